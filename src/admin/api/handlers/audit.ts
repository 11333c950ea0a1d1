import { namesOf } from '../../../access/audit/subject-names.ts'
import { type AuditReport, verifyAudit } from '../../../access/audit/verify.ts'
import { hasIdPrefix, lookUp } from '../../../access/provisioning/context.ts'
import { isServiceError, ServiceError } from '../../../core/error.ts'
import { mapInSlices } from '../../../platform/process/time-slices.ts'
import type { AdminHandlers } from '../handler.ts'
import type { HandlerDeps } from './deps.ts'
import { cursorOf, pageOf, textOf } from './query.ts'

export function auditHandlers({ store }: HandlerDeps): Pick<AdminHandlers, 'audit' | 'auditVerify'> {
  /** One verification at a time: requests meanwhile get its result. It runs in slices, beside the other work of the thread. */
  let verifying: Promise<AuditReport> | undefined

  /** The id of a customer or subscription that is given by its name; any other id as it is. */
  async function subjectOf(text: string): Promise<string> {
    if (hasIdPrefix(text)) return text
    try {
      return (await lookUp(store, 'subscriptions', text)).id
    } catch (error) {
      if (!isServiceError(error, 'not-found')) throw error
      return (await lookUp(store, 'customers', text)).id
    }
  }

  return {
    async audit(call) {
      const { limit, after } = pageOf(call)
      const before = after === undefined ? undefined : Number(after)
      if (before !== undefined && !Number.isSafeInteger(before))
        throw new ServiceError('invalid-value', 'the cursor is not one of the audit log', {
          fix: 'Start again without cursor.',
        })
      const text = textOf(call, 'subject')
      const subject = text === undefined ? undefined : await subjectOf(text)
      const { lines, next } = await store.auditPage({ before, limit, subject })
      const records = await mapInSlices(lines, (line) => JSON.parse(line) as { subjects: readonly string[] })
      const names = await namesOf(
        store,
        records.flatMap(({ subjects }) => subjects),
      )
      const items = await mapInSlices(records, (record) => ({
        ...record,
        subject_names: Object.fromEntries(
          record.subjects.flatMap((id) => (Object.hasOwn(names, id) ? [[id, names[id]]] : [])),
        ),
      }))
      return { body: { items, next_cursor: cursorOf(next) } }
    },

    async auditVerify() {
      verifying ??= verifyAudit(store).finally(() => {
        verifying = undefined
      })
      const { lines, findings, notes } = await verifying
      return { body: { ok: findings.length === 0, lines, findings, notes } }
    },
  }
}
