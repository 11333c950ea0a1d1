import type { Access } from '../../../access/call-access.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

/** Maximum lines per change of the store; of more changes only the number is logged. */
const LOGGED_MAX = 100

/**
 * Logs changes by the command line in the process that serves the customers, next to the refusals and disconnections they cause: action, subjects and
 * operator. The details are in the audit log.
 */
export async function notifyChanges(
  store: Pick<AccessStore, 'auditHead' | 'auditLines'>,
  access: Pick<Access, 'onChange'>,
  log: Logger,
): Promise<AsyncDisposable> {
  let next = (await store.auditHead()).seq + 1
  let reporting = Promise.resolve()

  async function report(): Promise<void> {
    const { seq } = await store.auditHead()
    // A restored store may have lower numbers; its lines are old.
    if (seq < next) next = seq + 1
    const left = Math.max(0, seq - next + 1 - LOGGED_MAX)
    next += left
    if (left > 0) log.info({ changes: left }, 'many changes, only the newest are logged')
    for await (const line of store.auditLines(next)) {
      log.info(fieldsOf(line), 'changed by the operator')
      next += 1
    }
  }

  const watching = access.onChange(() => {
    reporting = reporting
      .then(report)
      .catch((err: unknown) => log.debug({ err }, 'changes cannot be read at the moment'))
  })
  return {
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]()
      await reporting
    },
  }
}

function fieldsOf(line: string): Record<string, unknown> {
  const { seq, actor, action, subjects } = JSON.parse(line) as {
    seq: number
    actor: { user: string; sudo_user?: string | null }
    action: string
    subjects: string[]
  }
  return {
    subscription: subjects.find((id) => id.startsWith('sub_')),
    customer: subjects.find((id) => id.startsWith('cus_')),
    action,
    by: actor.sudo_user ?? actor.user,
    audit: seq,
  }
}
