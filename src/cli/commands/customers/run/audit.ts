import { namesOf, type SubjectNames } from '../../../../access/audit/subject-names.ts'
import { verifyAudit as verifyChain } from '../../../../access/audit/verify.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { sanitizeForTerminal } from '../../../output/plain-text.ts'
import { printJson, write } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'

const LINES_DEFAULT = 20

export async function tailAudit(
  this: CliContext,
  flags: CommonFlags & { lines?: string; follow?: boolean },
): Promise<void> {
  const lines = flags.lines === undefined ? LINES_DEFAULT : Number(flags.lines)
  if (!Number.isSafeInteger(lines) || lines < 1)
    throw new ServiceError('invalid-value', `"${flags.lines}" is not a number of lines`)
  await using session = await openSession(this, flags, 'read')
  const { store } = session
  let next = Math.max(1, (await store.auditHead()).seq - lines + 1)
  const print = async () => {
    for await (const line of store.auditLines(next)) {
      const names = await namesOf(store, subjectsOf(line))
      this.process.stdout.write(`${flags.json === true ? withNames(line, names) : readable(line, names)}\n`)
      next += 1
    }
  }
  await print()
  if (flags.follow !== true) return
  let printing = Promise.resolve()
  await using _following = await store.follow(() => {
    printing = printing.then(print)
  })
  await new Promise<void>((resolve) => this.process.once('SIGINT', resolve))
  await printing
}

export async function verifyAudit(this: CliContext, flags: CommonFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const { lines, findings, notes } = await verifyChain(session.store)
  if (findings.length > 0) {
    const message = findings.map(({ location, line, what }) => `${location} line ${line} ${what}`)
    throw new ServiceError('audit-broken', message.join('; '))
  }
  if (flags.json === true) return printJson(this, { ok: true, lines, notes })
  for (const note of notes) write(this, note)
  write(this, `the audit chain is complete: ${lines} lines`)
}

type AuditRecord = {
  readonly seq: number
  readonly time: string
  readonly actor: { readonly user: string; readonly sudo_user?: string | null }
  readonly action: string
  readonly subjects: readonly string[]
}

/** An audit record as one line: number, time, user, action, subjects with their names. */
function readable(line: string, names: SubjectNames): string {
  const { seq, time, actor, action, subjects } = JSON.parse(line) as AuditRecord
  const shown = subjects.map((id) => (names[id] === undefined ? id : `${names[id]} (${id})`))
  return sanitizeForTerminal(
    `${String(seq).padStart(5)}  ${time}  ${actor.sudo_user ?? actor.user}  ${action}  ${shown.join('  ')}`,
  )
}

/** The line byte for byte as it is in the chain, with `subject_names` added at its end. */
function withNames(line: string, names: SubjectNames): string {
  return Object.keys(names).length === 0 ? line : `${line.slice(0, -1)},"subject_names":${JSON.stringify(names)}}`
}

function subjectsOf(line: string): readonly string[] {
  return (JSON.parse(line) as AuditRecord).subjects
}
