/* The program is the library's one function: what it does, others can have in their own programs.
 */
#include "include/cicada.h"

int main(int argc, char **argv)
{
    return cicada_main(argc, argv, NULL);
}
