export type Terminal = {
  readonly stdout: NodeJS.WriteStream
  readonly stdin: NodeJS.ReadStream
}

export type Screen = Disposable & {
  readonly columns: number
  readonly rows: number
  /** Shows these lines, which the caller has cut to `columns`; writes only changed lines. */
  draw(lines: readonly string[]): void
  /** Resolves on q, Ctrl-C or a signal. */
  readonly left: Promise<void>
  onResize(listener: () => void): void
}

const ESCAPE = '\u001b['
/** Alternate screen, hidden cursor, no line wrapping. */
const ENTER = `${ESCAPE}?1049h${ESCAPE}?25l${ESCAPE}?7l${ESCAPE}2J`
const LEAVE = `${ESCAPE}?7h${ESCAPE}?25h${ESCAPE}?1049l`
/** Synchronized output: the terminal updates after the complete frame. Others ignore it. */
const BEGIN_PICTURE = `${ESCAPE}?2026h`
const END_PICTURE = `${ESCAPE}?2026l`
const LEAVE_KEYS = ['q', 'Q', '\u0003', '\u0004']
const SUSPEND_KEY = '\u001a'
const SIZE_UNKNOWN = { columns: 80, rows: 24 }

/** Takes over the terminal until disposed; restores it also on exit and after a throw. */
export function openScreen(process: NodeJS.Process): Screen {
  const { stdout, stdin } = process as Terminal
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  const listeners = new Set<() => void>()
  let shown: readonly string[] = []
  let isOpen = false

  function enter(): void {
    if (isOpen) return
    isOpen = true
    shown = []
    if (stdin.isTTY) stdin.setRawMode(true)
    stdout.write(ENTER)
  }

  function restore(): void {
    if (!isOpen) return
    isOpen = false
    stdout.write(LEAVE)
    if (stdin.isTTY) stdin.setRawMode(false)
  }

  function onKeys(keys: Buffer): void {
    const text = keys.toString('latin1')
    if (LEAVE_KEYS.some((key) => text === key)) leave()
    if (text !== SUSPEND_KEY) return
    restore()
    process.once('SIGCONT', () => {
      enter()
      for (const listener of listeners) listener()
    })
    process.kill(process.pid, 'SIGTSTP')
  }

  function onResize(): void {
    shown = []
    if (isOpen) stdout.write(`${ESCAPE}2J`)
    for (const listener of listeners) listener()
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, leave)
  // Without this a throw would leave the terminal in raw mode.
  process.once('exit', restore)
  stdout.on('resize', onResize)
  if (stdin.isTTY) stdin.on('data', onKeys).resume()
  enter()

  return {
    get columns() {
      // One column less: erasing to the end of a full line would erase its last character.
      return (stdout.columns > 0 ? stdout.columns : SIZE_UNKNOWN.columns) - 1
    },
    get rows() {
      return stdout.rows > 0 ? stdout.rows : SIZE_UNKNOWN.rows
    },
    draw(lines) {
      if (!isOpen) return
      let text = ''
      for (let row = 0; row < Math.max(lines.length, shown.length); row++) {
        const line = lines[row] ?? ''
        if (line !== shown[row]) text += `${ESCAPE}${row + 1};1H${line}${ESCAPE}K`
      }
      shown = lines
      if (text !== '') stdout.write(`${BEGIN_PICTURE}${text}${END_PICTURE}`)
    },
    left,
    onResize: (listener) => void listeners.add(listener),
    [Symbol.dispose]() {
      restore()
      stdout.off('resize', onResize)
      if (stdin.isTTY) stdin.off('data', onKeys).pause()
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, leave)
      process.off('exit', restore)
    },
  }
}
