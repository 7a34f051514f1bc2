/* Appends entries to a file, with one fdatasync for each group. Prints the entries a second.
 *
 *     append FILE SECONDS ENTRIES-PER-GROUP BYTES-PER-ENTRY
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int fail(const char *what) {
    fprintf(stderr, "append: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "append FILE SECONDS ENTRIES-PER-GROUP BYTES-PER-ENTRY\n");
        return 2;
    }
    double seconds = atof(arguments[2]);
    size_t entries = strtoul(arguments[3], NULL, 10), bytes = strtoul(arguments[4], NULL, 10);
    size_t length = entries * bytes;
    char *group = malloc(length ? length : 1);
    int file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (!group || file < 0)
        return fail(arguments[1]);

    unsigned long long appended = 0;
    double began = now(), elapsed;
    do {
        /* every entry is another one */
        for (size_t entry = 0; entry < entries; entry++)
            memset(group + entry * bytes, (int)(appended + entry), bytes);
        for (size_t at = 0; at < length;) {
            ssize_t written = write(file, group + at, length - at);
            if (written < 0)
                return fail("write");
            at += (size_t)written;
        }
        if (fdatasync(file) < 0)
            return fail("fdatasync");
        appended += entries;
        elapsed = now() - began;
    } while (elapsed < seconds);
    printf("%.1f\n", (double)appended / elapsed);
    return 0;
}
