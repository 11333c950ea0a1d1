import type { ApplicationContext } from '@stricli/core'
import { endOnClosedPipe } from './closed-pipe.ts'
import type { CliContext } from './define.ts'
import { exitCodeFrom } from './errors.ts'
import { runCommandLine } from './run-command-line.ts'

/** The operator's command line. Data goes to standard output, messages to standard error; exit codes are in `contract/exit-codes.ts`. */
const argv = process.argv.slice(2)

endOnClosedPipe(process)

// stricli types `process.exitCode` without undefined, which Node allows.
const context = { process } as unknown as ApplicationContext & CliContext

await runCommandLine(argv, context)

process.exitCode = exitCodeFrom(process.exitCode)
// An open connection must not keep the command running. Output to files, pipes and terminals is written by now.
setTimeout(() => process.exit(), 1000).unref()
// And Node must not wait for a request of a closed handle: where nothing is left to do it frees what it has, and may do that forever.
process.on('exit', () => process.exit())
