/* Starts a program with a command line that is exactly the one in the variable WINCONFORM_COMMAND_LINE, as a
 * container runtime does (CreateProcessW), hands on the standard streams, and ends with the program's exit code. */
#include <windows.h>
static WCHAR line[32767];
int wmain(void) {
    STARTUPINFOW start = { .cb = sizeof start };
    PROCESS_INFORMATION process;
    DWORD code;
    if (!GetEnvironmentVariableW(L"WINCONFORM_COMMAND_LINE", line, 32767)) return 255;
    SetEnvironmentVariableW(L"WINCONFORM_COMMAND_LINE", NULL);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return 254;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
