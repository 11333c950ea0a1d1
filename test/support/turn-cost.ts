/** For tests: the longest turn of this thread's event loop in processor time, so that a busy machine does not count. */
export function watchTurns(): Disposable & { readonly longestMs: number } {
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
