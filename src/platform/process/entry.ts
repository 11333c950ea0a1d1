/**
 * The file that a worker thread or child process runs. Callers name it as source, `new URL('./thread.ts', import.meta.url)`; the published package
 * has the emitted JavaScript in its place.
 */
export function entryUrl(source: URL, ownUrl: string = import.meta.url): URL {
  return ownUrl.endsWith('.ts') ? source : new URL(source.href.replace(/\.ts$/, '.js'))
}
