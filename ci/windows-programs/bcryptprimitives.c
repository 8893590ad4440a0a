/* What Go programs ask for randomness, and Wine 8 lacks (golang/go, src/runtime/os_windows.go). */
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, size); }
