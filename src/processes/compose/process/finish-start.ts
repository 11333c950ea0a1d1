import type { ProcessContext } from './open-process.ts'
import type { Operator } from './operator.ts'
import { VERSION } from './version.ts'

type Drainable = { beginLameDuck(): void; drain(deadlineMs: number): Promise<void> }

export type StartedParts = {
  readonly operator: Operator
  /** Services with clients. They drain all at once, before anything is closed: none of them needs another one to finish a request. */
  readonly drains?: Readonly<Record<string, Drainable | undefined>>
  /** Everything the process opened. */
  readonly opened: AsyncDisposableStack
  /** Names the access store in the log. */
  readonly store?: string | undefined
}

/** The last step of every process: registers how it drains and closes, reports ready, and logs where it listens. */
export function finishStart({ lifecycle, log, state }: ProcessContext<never>, started: StartedParts): void {
  const { operator, opened, store } = started
  const drains = Object.entries(started.drains ?? {}).flatMap(([name, service]) => (service ? [{ name, service }] : []))
  lifecycle.onDraining(() => {
    operator.beginLameDuck()
    for (const { service } of drains) service.beginLameDuck()
  })
  lifecycle.defer('services', () => opened.disposeAsync())
  lifecycle.deferClients(
    Object.fromEntries(drains.map(({ name, service }) => [name, (deadlineMs: number) => service.drain(deadlineMs)])),
  )
  lifecycle.started()
  for (const { name, address } of operator.services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path, ...(store === undefined ? {} : { store }) }, 'started')
}
