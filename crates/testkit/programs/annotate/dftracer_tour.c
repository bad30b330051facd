/*
 * Every C macro and function of dftracer/dftracer.h: dftracer_tour ENDING. What must be in the trace is said in
 * tests/suite/annotate_c/dftracer.rs. ENDING: fini, return, exit, _exit, kill, interrupt, terminate, hang up, again (init, fini, init, fini), fork, no_bind, no_init,
 * null (every pointer NULL), given (the log file and the data directories are arguments).
 */
#define _GNU_SOURCE
#include <dftracer/dftracer.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void save(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || write(fd, "0123456789", 10) != 10) exit(1);
    close(fd);
}

static int function(int n) {
    DFTRACER_C_FUNCTION_START();
    DFTRACER_C_FUNCTION_UPDATE_INT("n", n);
    DFTRACER_C_FUNCTION_UPDATE_STR("text", "with \"quotes\"\n");
    DFTRACER_C_FUNCTION_UPDATE_INT_TYPE("value", -1, 1);
    DFTRACER_C_FUNCTION_UPDATE_STR_TYPE("ignored", "told all the same", 2);
    if (n == 1) return 1; /* no END: the block ends it */
    DFTRACER_C_REGION_START(region);
    DFTRACER_C_REGION_UPDATE_INT(region, "least", -2147483647 - 1);
    DFTRACER_C_REGION_UPDATE_STR(region, "text", "r");
    DFTRACER_C_REGION_UPDATE_INT_TYPE(region, "value", 2, 1);
    DFTRACER_C_REGION_UPDATE_STR_TYPE(region, "key", "k", 0);
    save("data/region.bin");
    DFTRACER_C_REGION_END(region);
    {
        DFTRACER_C_REGION_START(left_open)
        DFTRACER_C_METADATA(meta, "key", "val\"ue");
    }
    DFTRACER_C_FUNCTION_END();
    return 0;
}

static void by_hand(void) {
    struct DFTracerData *data = initialize_region("by hand", "OTHER", DF_DATA_EVENT);
    update_metadata_int(data, "n", 3);
    update_metadata_string(data, "text", NULL);
    update_metadata_int_type(data, "m", 4, 0);
    update_metadata_string_type(data, "s", "t", 1);
    finalize_region(data);
    data = initialize_region("cleaned up", "OTHER", DF_DATA_EVENT);
    finalize_region_cleanup(&data);
    if (data) exit(1);
}

static void nulls(void) {
    DFTRACER_C_INIT(NULL, NULL, NULL);
    struct DFTracerData *data = NULL;
    finalize_region(NULL);
    finalize_region_cleanup(NULL);
    finalize_region_cleanup(&data);
    update_metadata_int(NULL, "a", 1);
    update_metadata_string(NULL, "a", "b");
    data = initialize_region(NULL, NULL, DF_DATA_EVENT);
    update_metadata_int(data, NULL, 1);
    update_metadata_string(data, NULL, "b");
    update_metadata_int_type(data, NULL, 1, 99);
    update_metadata_string_type(data, "a", NULL, -1);
    finalize_region(data);
    finalize_region(data); /* twice */
    finalize_region(initialize_region(NULL, NULL, DF_METADATA_EVENT));
    set_app_metadata_int(NULL, 1);
    set_app_metadata_string(NULL, NULL);
    set_app_metadata_string("a", NULL);
    mark_used(NULL);
    char *text = malloc(1 << 20);
    memset(text, 0xfe, (1 << 20) - 1);
    text[(1 << 20) - 1] = 0;
    data = initialize_region(text, text, DF_DATA_EVENT);
    for (int i = 0; i < 100; i++) update_metadata_string(data, text, text);
    finalize_region(data);
    free(text);
    DFTRACER_C_FINI();
    DFTRACER_C_FINI();
}

static void tour(void) {
    DFTRACER_C_APP_METADATA_INT("ranks", 4);
    DFTRACER_C_APP_METADATA_STR("dataset", "imagenet");
    DFTRACER_C_MARK_USED("mine");
    DFTRACER_C_MARK_USED("mine");
    function(1);
    function(0);
    by_hand();
    save("elsewhere.bin");
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const char *ending = argv[1];
    int pid = -1;
    mkdir("data", 0755);
    /* A job that a shell starts in the background ignores it. */
    signal(SIGINT, SIG_DFL);
    if (strcmp(ending, "null") == 0) {
        nulls();
        puts(ending);
        return 0;
    }
    if (strcmp(ending, "given") == 0) {
        DFTRACER_C_INIT("given.pfw", "data", &pid);
    } else if (strcmp(ending, "no_bind") == 0) {
        DFTRACER_C_INIT_NO_BIND(NULL, NULL, &pid);
    } else if (strcmp(ending, "no_init") != 0) {
        DFTRACER_C_INIT(NULL, NULL, &pid);
    }
    tour();
    puts(ending);
    fflush(stdout);
    if (strcmp(ending, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            DFTRACER_C_REGION_START(in_child);
            save("data/child.bin");
            DFTRACER_C_REGION_END(in_child);
            return 0;
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(ending, "again") == 0) {
        DFTRACER_C_FINI();
        DFTRACER_C_REGION_START(between);
        DFTRACER_C_REGION_END(between);
        DFTRACER_C_INIT(NULL, NULL, &pid);
        DFTRACER_C_REGION_START(second);
        DFTRACER_C_REGION_END(second);
        DFTRACER_C_FINI();
    }
    if (strcmp(ending, "exit") == 0) exit(3);
    if (strcmp(ending, "_exit") == 0) _exit(4);
    if (strcmp(ending, "kill") == 0) raise(SIGKILL);
    if (strcmp(ending, "interrupt") == 0) raise(SIGINT);
    if (strcmp(ending, "terminate") == 0) raise(SIGTERM);
    if (strcmp(ending, "hang up") == 0) raise(SIGHUP);
    if (strcmp(ending, "fini") == 0) {
        DFTRACER_C_FINI();
        save("data/after.bin");
    }
    return 0;
}
