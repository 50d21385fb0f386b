/* Files as bytes of the program: the assembler includes them as they are, so there is no generated
 * source and no escaping. Paths are relative to the root of the repository, where the compiler
 * runs; the Makefile names the files as what the object depends on. */
#ifndef CICADA_BASE_EMBED_H
#define CICADA_BASE_EMBED_H

#include "base/str.h"

/* At the top of a file: two symbols around the bytes, visible to this program only. A NUL follows
 * the last byte. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"                             \
            ".incbin \"" path "\"\n"                                                               \
            ".global " #symbol "_end\n.hidden " #symbol "_end\n" #symbol "_end:\n"                 \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char symbol[] __attribute__((visibility("hidden")));                              \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

#define EMBEDDED(symbol) ((struct str){symbol, (size_t)(symbol##_end - symbol)})

#endif
