/* Loaded into the server that scripts/instructions counts, in front of libc: the calendar's clock stands
   still, and chance is the same in every run. See there. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* By the coarse clock jemalloc gives memory back. The monotonic one goes on: threads wait by it. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC_COARSE) {
        now->tv_sec = 1700000000;
        now->tv_nsec = 0;
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    static unsigned long long state = 88172645463325252;
    (void)flags;
    for (size_t at = 0; at < length; at++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((unsigned char *)buffer)[at] = (unsigned char)state;
    }
    return (ssize_t)length;
}
