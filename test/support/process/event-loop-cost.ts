/** Measures the longest event loop iteration of this thread in CPU time, which does not depend on the machine's load. */
export function watchEventLoop(): Disposable & { readonly longestMs: number } {
  let longestMs = 0
  let isOver = false
  let before = process.threadCpuUsage()
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    longestMs = Math.max(longestMs, (user + system) / 1000)
    before = process.threadCpuUsage()
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  return {
    get longestMs() {
      return longestMs
    },
    [Symbol.dispose]() {
      isOver = true
    },
  }
}
