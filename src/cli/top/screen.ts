/** What a live picture needs of the terminal it is drawn on. */
export type Terminal = {
  readonly stdout: NodeJS.WriteStream
  readonly stdin: NodeJS.ReadStream
}

export type Screen = Disposable & {
  readonly columns: number
  readonly rows: number
  /** Shows these lines, cut by the caller to `columns`; only lines that changed are written. */
  draw(lines: readonly string[]): void
  /** Resolves when the person leaves, by q, Ctrl-C or a signal. */
  readonly left: Promise<void>
  /** Calls back after the size changed. */
  onResize(listener: () => void): void
}

const ESCAPE = '\u001b['
/** A second screen, so that what was on the terminal is back afterwards; no cursor; no wrapping of a line one column too long. */
const ENTER = `${ESCAPE}?1049h${ESCAPE}?25l${ESCAPE}?7l${ESCAPE}2J`
const LEAVE = `${ESCAPE}?7h${ESCAPE}?25h${ESCAPE}?1049l`
/** Terminals that know it show a picture only when it is whole; others ignore it. */
const BEGIN_PICTURE = `${ESCAPE}?2026h`
const END_PICTURE = `${ESCAPE}?2026l`
const LEAVE_KEYS = ['q', 'Q', '\u0003', '\u0004']
const SUSPEND_KEY = '\u001a'
const SIZE_UNKNOWN = { columns: 80, rows: 24 }

/** Takes the terminal over until it is disposed of; whatever happens, it is given back as it was. */
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
    // What the old size left behind.
    if (isOpen) stdout.write(`${ESCAPE}2J`)
    for (const listener of listeners) listener()
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, leave)
  // A throw anywhere must not leave the person with a terminal that echoes nothing.
  process.once('exit', restore)
  stdout.on('resize', onResize)
  if (stdin.isTTY) stdin.on('data', onKeys).resume()
  enter()

  return {
    get columns() {
      // One less than there are: clearing the rest of a line that is full would clear its last character.
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
