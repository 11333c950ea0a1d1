import { type ApplicationContext, proposeCompletions, run } from '@stricli/core'
import { createApplication } from './application.ts'
import type { CliContext } from './define.ts'
import { exitCodeFrom } from './errors.ts'

/** The operator's command line. Data goes to standard output, talk to standard error; the exit code is from `contract/exit-codes.ts`. */
const argv = process.argv.slice(2)

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader such as `head` that has seen enough is no mistake of ours.
  if (error.code === 'EPIPE') return
  process.stderr.write(`error: standard output cannot be written: ${error.code}\n`)
  process.exitCode = 1
})

// The library's type of a process leaves out that an exit code may be undefined; Node's has it.
const context = { process } as unknown as ApplicationContext & CliContext

const application = createApplication(argv)

// Asked by the shell's completion script: what could the last word become?
if (argv[0] === '__complete') {
  for (const { completion } of await proposeCompletions(application, argv.slice(1), context))
    process.stdout.write(`${completion}\n`)
} else {
  await run(application, argv, context)
}

process.exitCode = exitCodeFrom(process.exitCode)
// A server that holds a connection open must not hold the command; output to files, pipes and terminals is written by now.
setTimeout(() => process.exit(), 1000).unref()
