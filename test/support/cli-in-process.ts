import { run } from '@stricli/core'
import { createApplication } from '../../src/apps/commands/application.ts'
import type { CliResult } from './cli.ts'

/** Runs a command line inside this process: the same code as `sluice …`, many times faster than a process each. */
export async function sluiceHere(words: readonly string[], env: Record<string, string> = {}): Promise<CliResult> {
  const out: string[] = []
  const talk: string[] = []
  const fake = {
    stdout: { isTTY: false, write: (text: string) => out.push(text) > 0 },
    stderr: { isTTY: false, write: (text: string) => talk.push(text) > 0 },
    stdin: { isTTY: false },
    env,
    exitCode: undefined as number | undefined,
    once() {},
  }
  const context = { process: fake } as unknown as Parameters<typeof run>[2]
  await run(createApplication(words) as unknown as Parameters<typeof run>[0], words, context)
  return { code: Number(fake.exitCode ?? 0), stdout: out.join(''), stderr: talk.join('') }
}
