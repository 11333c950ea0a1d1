import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { openOperations } from '../../../operations/open.ts'
import { usageGroup } from '../../../operations/usage.ts'
import { write } from '../../../output/print.ts'

export type UsageExportFlags = CommonFlags & {
  readonly month: string
  readonly customer?: string
  readonly by?: 'day' | 'method' | 'interface'
  readonly format?: 'csv' | 'jsonl'
  readonly out?: string
}

export async function usageExport(this: CliContext, flags: UsageExportFlags): Promise<void> {
  await using on = await openOperations(usageGroup, this, flags, 'read')
  const { month, customer, by = 'day', format = flags.json === true ? 'jsonl' : 'csv', out } = flags
  const lines = await on.export({ month, customer, by, format })
  if (out === undefined) {
    await writeLines(lines, this.process.stdout as unknown as Writable)
    return
  }
  // An existing file is not overwritten: it may be an invoice that was sent.
  await pipeline(lines, createWriteStream(out, { flags: 'wx', mode: 0o600 }))
  write(this, `usage of ${flags.month} is in ${out}`)
}

/** Reads on only as fast as standard output is read. A reader such as `head` may close it. */
export async function writeLines(lines: AsyncIterable<string>, stdout: Writable): Promise<void> {
  try {
    await pipeline(lines, stdout, { end: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}
