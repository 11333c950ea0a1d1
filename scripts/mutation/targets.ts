/** Files whose checks keep customers apart or the service alive, each with the tests that hold it. */
export const TARGETS: readonly { readonly file: string; readonly tests: readonly string[] }[] = []
