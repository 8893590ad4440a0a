/* Prints each of its arguments on a line, and behind them what it reads: what a command line comes to when it arrives. */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
int main(int count, char **arguments) {
    char some[4096];
    size_t read;
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    for (int at = 1; at < count; at++) printf("%s\n", arguments[at]);
    while ((read = fread(some, 1, sizeof some, stdin))) fwrite(some, 1, read, stdout);
    return 0;
}
