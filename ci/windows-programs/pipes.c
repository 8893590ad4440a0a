/* Has the pipe of which a command reads a line and one of a CSI proxy, says so, and ends with its input. */
#include <stdio.h>
#include <windows.h>
static HANDLE pipe_of(const char *name) {
    return CreateNamedPipeA(name, PIPE_ACCESS_OUTBOUND, 0, 1, 0, 0, 0, NULL);
}
static DWORD WINAPI serve(void *pipe) {
    DWORD written;
    while (ConnectNamedPipe(pipe, NULL) || GetLastError() == ERROR_PIPE_CONNECTED) {
        WriteFile(pipe, "winconform\r\n", 12, &written, NULL);
        FlushFileBuffers(pipe);
        DisconnectNamedPipe(pipe);
    }
    return 0;
}
int main(void) {
    HANDLE pipe = pipe_of("\\\\.\\pipe\\winconform");
    HANDLE listed = pipe_of("\\\\.\\pipe\\csi-proxy-volume-v1");
    if (pipe == INVALID_HANDLE_VALUE || listed == INVALID_HANDLE_VALUE) return 1;
    CreateThread(NULL, 0, serve, pipe, 0, NULL);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
