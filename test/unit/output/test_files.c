#include "worker/output/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char the_folder[32];

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static unsigned next;
    char *p = path[next++ % 4];
    (void)snprintf(p, sizeof path[0], "%s/%s", the_folder, name); /* fits */
    return p;
}

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(the_folder, sizeof the_folder, "/tmp/cicada-files-XXXXXX"); /* fits */
    return mkdtemp(the_folder) ? 0 : -1;
}

/* Fails when anything else is left, such as a part of a file. */
static int drop_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b/file", "a/b", "a", "link", "file", "pipe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)remove(in_folder(names[i])); /* those that a test made */
    return rmdir(the_folder);
}

static void assert_holds(const char *path, const char *text)
{
    struct buf b;
    buf_init(&b, 1000);
    assert_int_equal(buf_read_file(&b, path, NULL), 0);
    assert_string_equal(buf_c(&b), text);
    buf_done(&b);
}

static void test_trying_leaves_nothing_but_folders(void **state)
{
    (void)state;
    assert_int_equal(files_try(in_folder("a/b/file"), NULL), 0);
    assert_int_equal(access(in_folder("a/b"), F_OK), 0);
    assert_int_equal(access(in_folder("a/b/file"), F_OK), -1);
    assert_int_equal(files_write(in_folder("a/b/file"), STR("old"), NULL), 0);
    assert_int_equal(files_try(in_folder("a/b/file"), NULL), 0);
    assert_holds(in_folder("a/b/file"), "old");
}

static void test_a_file_is_replaced_whole(void **state)
{
    (void)state;
    assert_int_equal(files_write(in_folder("file"), STR("first"), NULL), 0);
    FILE *reader = fopen(in_folder("file"), "r");
    char text[16] = "";
    assert_non_null(reader);
    assert_int_equal(files_write(in_folder("file"), STR("second"), NULL), 0);
    assert_int_equal(fread(text, 1, sizeof text - 1, reader),
                     5); /* who read the first still does */
    assert_string_equal(text, "first");
    assert_int_equal(fclose(reader), 0);
    assert_holds(in_folder("file"), "second");
}

/* All write the same file at once: each finds its own part again. */
static void test_processes_do_not_take_each_others_parts(void **state)
{
    (void)state;
    const char *path = in_folder("file");
    pid_t writers[4];
    for (size_t i = 0; i < 4; i++) {
        writers[i] = fork();
        assert_true(writers[i] >= 0);
        int rc = 0;
        for (unsigned n = 0; writers[i] == 0 && rc == 0 && n < 300; n++)
            rc = files_write(path, STR("whole"), NULL);
        if (writers[i] == 0)
            _exit(rc == 0 ? 0 : 1);
    }
    for (size_t i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
    assert_holds(path, "whole");
}

static void test_a_link_stays_a_link(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(symlink(in_folder("file"), in_folder("link")), 0);
    assert_int_equal(files_write(in_folder("file"), STR("a longer text"), NULL), 0);
    assert_int_equal(files_try(in_folder("link"), NULL), 0);
    assert_int_equal(files_write(in_folder("link"), STR("new"), NULL), 0);
    assert_int_equal(lstat(in_folder("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds(in_folder("file"), "new");
}

/* Root may everything, so it is somebody else for a moment. */
static void test_a_file_in_a_closed_folder_is_written_to(void **state)
{
    (void)state;
    const char *path = in_folder("file");
    assert_int_equal(files_write(path, STR("a longer text"), NULL), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(chmod(the_folder, 0555), 0);
    bool root = geteuid() == 0;
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    int tried = files_try(path, NULL), written = files_write(path, STR("new"), NULL);
    int other = files_try(in_folder("other"), NULL);
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_int_equal(chmod(the_folder, 0700), 0);
    assert_int_equal(tried, 0);
    assert_int_equal(written, 0);
    assert_int_equal(other, -EACCES);
    assert_holds(path, "new");
}

static void test_trying_a_pipe_does_not_wait(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(files_try(in_folder("pipe"), NULL), 0);
}

static void test_faults_name_the_path(void **state)
{
    (void)state;
    struct err err = {0};
    char expected[200];
    assert_int_equal(files_write(in_folder("file"), STR("x"), NULL), 0);
    assert_int_equal(files_try(in_folder("file/x/y"), &err), -ENOTDIR);
    (void)snprintf(expected, sizeof expected, "%s: Not a directory", in_folder("file")); /* fits */
    assert_string_equal(err.text, expected);
    assert_int_equal(files_try(the_folder, NULL), -EISDIR);
    assert_int_equal(files_open_growing(the_folder, NULL), -EISDIR);
    err = (struct err){0};
    assert_int_equal(files_write("/dev/full", STR("x"), &err), -ENOSPC);
    assert_string_equal(err.text, "/dev/full: No space left on device");
    assert_int_equal(files_make_folder("/proc/none/such", NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_trying_leaves_nothing_but_folders, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(test_a_file_is_replaced_whole, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_processes_do_not_take_each_others_parts, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(test_a_link_stays_a_link, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_a_file_in_a_closed_folder_is_written_to, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(test_trying_a_pipe_does_not_wait, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_faults_name_the_path, make_folder, drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
