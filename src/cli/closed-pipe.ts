import { exitCodeFrom } from './errors.ts'

/** Standard output of processes that go on without a reader. */
const OUTLIVING = new WeakSet<object>()

/** Ends the command when the reader of its output, such as `head`, is gone: one that follows something, or waits for the pipe, would never end. */
export function endOnClosedPipe(process: NodeJS.Process): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') {
      process.stderr.write(`error: standard output cannot be written: ${error.code}\n`)
      process.exitCode = 1
    } else if (!OUTLIVING.has(process.stdout)) process.exit(exitCodeFrom(process.exitCode))
  })
}

/** For a service: its log is a by-product. */
export function outliveClosedPipe({ stdout }: Pick<NodeJS.Process, 'stdout'>): void {
  OUTLIVING.add(stdout)
}
