/* cicada listener: the master's part of the report alone, to import into a locustfile. */
#include "worker/cli/commands.h"
#include "worker/locustfile/sections.h"

#include <stdio.h>

int command_listener(char *const argv[], char *const envp[])
{
    struct options options;
    int status = command_begin(argv, envp, 0, "no arguments but flags", &options);
    if (status >= 0)
        return status;
    struct str text = locustfile_listener();
    bool printed = fwrite(text.ptr, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
    options_done(&options);
    log_close();
    return printed ? EXIT_DONE : EXIT_FAILED;
}
