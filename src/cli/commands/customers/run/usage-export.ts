import { existsSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { UsageExportFormat, UsageExportGrouping } from '../../../../contract/usage-export.ts'
import { alreadyExists, createFileAtomic } from '../../../../platform/files/atomic.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { openOperations } from '../../../operations/open.ts'
import { usageGroup } from '../../../operations/usage.ts'
import { write } from '../../../output/print.ts'

export type UsageExportFlags = CommonFlags & {
  readonly month: string
  readonly customer?: string
  readonly by?: UsageExportGrouping
  readonly format?: UsageExportFormat
  readonly out?: string
}

export async function usageExport(this: CliContext, flags: UsageExportFlags): Promise<void> {
  await using on = await openOperations(usageGroup, this, flags, 'read')
  const { month, customer, by = 'day', format = flags.json === true ? 'jsonl' : 'csv', out } = flags
  // An existing file is not overwritten: it may be an invoice that was sent.
  if (out !== undefined && existsSync(out)) throw alreadyExists(out)
  const lines = await on.export({ month, customer, by, format })
  if (out === undefined) {
    await writeLines(lines, this.process.stdout as unknown as Writable)
    return
  }
  await writeNewFile(out, lines)
  write(this, `usage of ${flags.month} is in ${out}`)
}

/** An export that breaks off leaves no file: it would look complete. */
export async function writeNewFile(file: string, lines: AsyncIterable<string>): Promise<void> {
  await createFileAtomic(file, async (put) => {
    for await (const line of lines) await put(line)
  })
}

/** Reads on only as fast as standard output is read. A reader such as `head` may close it. */
export async function writeLines(lines: AsyncIterable<string>, stdout: Writable): Promise<void> {
  try {
    await pipeline(lines, stdout, { end: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}
