/* hiredis against the server: pipelines that are written whole before the first reply is read. */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `count` times GET of a value of `size` bytes; true if all of them are answered with the value. */
static int pipeline(redisContext *client, long count, size_t size) {
    char *value = malloc(size);
    if (value == NULL) return 0;
    memset(value, 'x', size);
    redisAppendCommand(client, "SET deep %b", value, size);
    for (long i = 0; i < count; i++) redisAppendCommand(client, "GET deep");
    /* All bytes, as a program does that calls redisBufferWrite by itself. */
    int finished = 0;
    while (!finished)
        if (redisBufferWrite(client, &finished) != REDIS_OK) return 0;
    int good = 1;
    for (long i = 0; good && i <= count; i++) {
        redisReply *reply = NULL;
        good = redisGetReply(client, (void **)&reply) == REDIS_OK;
        if (good && i == 0) good = reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
        if (good && i > 0)
            good = reply->type == REDIS_REPLY_STRING && reply->len == size && memcmp(reply->str, value, size) == 0;
        freeReplyObject(reply);
    }
    free(value);
    return good;
}

int main(void) {
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    long deepest = atol(getenv("CLIENTS_DEEPEST"));
    const long depths[][2] = {
        {1, 1}, {deepest, 1}, {deepest / 10, 1000}, {deepest / 1000, 100000}, {deepest / 10000, 1000000}};
    int passed = 1;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        redisContext *client = redisConnect("127.0.0.1", atoi(getenv("CLIENTS_PORT")));
        int good = client != NULL && client->err == 0 && pipeline(client, depths[i][0], depths[i][1]);
        printf("%s pipeline %ld_of_%ld_bytes", good ? "ok" : "not ok", depths[i][0], depths[i][1]);
        if (!good) printf(": %s", client != NULL && client->err ? client->errstr : "a reply is not the value");
        printf("\n");
        fflush(stdout);
        if (client != NULL) redisFree(client);
        passed &= good;
    }
    return !passed;
}
