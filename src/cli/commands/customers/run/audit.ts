import { ServiceError } from '../../../../core/error.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { type AuditLine, type AuditRecord, audit } from '../../../operations/audit.ts'
import { openOperations } from '../../../operations/open.ts'
import { sanitizeForTerminal } from '../../../output/plain-text.ts'
import { printJson, write } from '../../../output/print.ts'

const LINES_DEFAULT = 20

export async function tailAudit(
  this: CliContext,
  flags: CommonFlags & { lines?: string; follow?: boolean },
): Promise<void> {
  const lines = flags.lines === undefined ? LINES_DEFAULT : Number(flags.lines)
  if (!Number.isSafeInteger(lines) || lines < 1)
    throw new ServiceError('invalid-value', `"${flags.lines}" is not a number of lines`)
  await using log = await openOperations(audit, this, flags, 'read')
  let last = 0
  const print = async (read: AsyncIterable<AuditLine>) => {
    for await (const { json, record } of read) {
      this.process.stdout.write(`${flags.json === true ? json : readable(record)}\n`)
      last = record.seq
    }
  }
  await print(log.newest(lines))
  if (flags.follow !== true) return
  let printing = Promise.resolve()
  await using _following = await log.follow(() => {
    printing = printing.then(() => print(log.after(last)))
  })
  await new Promise<void>((resolve) => this.process.once('SIGINT', resolve))
  await printing
}

export async function verifyAudit(this: CliContext, flags: CommonFlags): Promise<void> {
  await using log = await openOperations(audit, this, flags, 'read')
  const { lines, findings, notes } = await log.verify()
  if (findings.length > 0) {
    const message = findings.map(({ location, line, what }) => `${location} line ${line} ${what}`)
    throw new ServiceError('audit-broken', message.join('; '))
  }
  if (flags.json === true) return printJson(this, { ok: true, lines, notes })
  for (const note of notes) write(this, note)
  write(this, `the audit chain is complete: ${lines} lines`)
}

/** An audit record as one line: number, time, user, action, subjects with their names. */
function readable({ seq, time, actor, action, subjects, subject_names: names = {} }: AuditRecord): string {
  const shown = subjects.map((id) => (names[id] === undefined ? id : `${names[id]} (${id})`))
  return sanitizeForTerminal(
    `${String(seq).padStart(5)}  ${time}  ${actor.sudo_user ?? actor.user}  ${action}  ${shown.join('  ')}`,
  )
}
