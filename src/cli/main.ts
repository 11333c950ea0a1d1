import type { ApplicationContext } from '@stricli/core'
import type { CliContext } from './define.ts'
import { exitCodeFrom } from './errors.ts'
import { runCommandLine } from './run-command-line.ts'

/** The operator's command line. Data goes to standard output, messages to standard error; exit codes are in `contract/exit-codes.ts`. */
const argv = process.argv.slice(2)

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader such as `head` closed the pipe: not an error.
  if (error.code === 'EPIPE') return
  process.stderr.write(`error: standard output cannot be written: ${error.code}\n`)
  process.exitCode = 1
})

// stricli types `process.exitCode` without undefined, which Node allows.
const context = { process } as unknown as ApplicationContext & CliContext

await runCommandLine(argv, context)

process.exitCode = exitCodeFrom(process.exitCode)
// An open connection must not keep the command running. Output to files, pipes and terminals is written by now.
setTimeout(() => process.exit(), 1000).unref()
// And Node must not wait for a request of a closed handle: where nothing is left to do it frees what it has, and may do that forever.
process.on('exit', () => process.exit())
