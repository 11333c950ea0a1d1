import { Writable } from 'node:stream'
import { exitCodeFrom } from '../../../src/cli/errors.ts'
import { runCommandLine } from '../../../src/cli/run-command-line.ts'
import { ALONE, type CliResult, onNewStore } from './run.ts'

/** Runs a command line in this process: the same code as `sluice …`, much faster than a child process. */
export async function sluiceHere(typed: readonly string[], given: Record<string, string> = {}): Promise<CliResult> {
  const words = onNewStore(typed)
  const env = { ...ALONE, ...given }
  const [stdout, stderr] = [new Collected(), new Collected()]
  const fake = { stdout, stderr, stdin: { isTTY: false }, env, exitCode: undefined as number | undefined, once() {} }
  await runCommandLine(words, { process: fake } as unknown as Parameters<typeof runCommandLine>[1])
  return { code: exitCodeFrom(fake.exitCode), stdout: stdout.text, stderr: stderr.text }
}

/** A non-terminal stream that collects what is written. */
class Collected extends Writable {
  readonly isTTY = false
  text = ''
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}
