/* A plain main for a fuzz target: runs it over each file of the folders and files named as
 * arguments, so that the corpora are replayed with any compiler and sanitizer. Prints how many it
 * ran. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long ran;

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    uint8_t *data = NULL;
    size_t size = 0, cap = 0;
    for (;;) {
        if (size == cap) {
            cap = cap ? cap * 2 : 4096;
            uint8_t *grown = realloc(data, cap);
            if (!grown)
                abort();
            data = grown;
        }
        size_t n = fread(data + size, 1, cap - size, f);
        if (n == 0)
            break;
        size += n;
    }
    fclose(f);
    /* an exact allocation lets AddressSanitizer see a read past the end */
    uint8_t *exact = realloc(data, size ? size : 1);
    (void)LLVMFuzzerTestOneInput(exact ? exact : data, size); /* a finding ends the process */
    free(exact ? exact : data);
    ran++;
    return 0;
}

static int run(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(st.st_mode))
        return run_file(path);
    int bad = 0;
    DIR *dir = opendir(path);
    if (!dir) {
        perror(path);
        return 1;
    }
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        char child[PATH_MAX];
        if (entry->d_name[0] == '.')
            continue;
        int n = snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (n > 0 && (size_t)n < sizeof child)
            bad |= run(child);
    }
    closedir(dir);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++)
        bad |= run(argv[i]);
    printf("replayed %lu inputs\n", ran);
    return bad || ran == 0;
}
