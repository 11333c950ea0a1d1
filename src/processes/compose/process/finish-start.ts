import type { ProcessContext } from './open-process.ts'
import type { Operator } from './operator.ts'
import { VERSION } from './version.ts'

type Drainable = { beginLameDuck(): void; drain(deadlineMs: number): Promise<void> }

export type StartedParts = {
  readonly operator: Operator
  /** Services with clients, in the order of their start. They drain in reverse, before anything is closed. */
  readonly drains?: Readonly<Record<string, Drainable | undefined>>
  /** Everything the process opened. */
  readonly opened: AsyncDisposableStack
  /** Names the access store in the log. */
  readonly store?: string
}

/** The last step of every process: registers how it drains and closes, reports ready, and logs where it listens. */
export function finishStart({ lifecycle, log, state }: ProcessContext<never>, started: StartedParts): void {
  const { operator, drains = {}, opened, store } = started
  lifecycle.onDraining(() => {
    operator.beginLameDuck()
    for (const service of Object.values(drains)) service?.beginLameDuck()
  })
  lifecycle.defer('services', () => opened.disposeAsync())
  for (const [name, service] of Object.entries(drains))
    if (service !== undefined) lifecycle.defer(name, (deadlineMs) => service.drain(deadlineMs))
  lifecycle.started()
  for (const { name, address } of operator.services) log.info({ service: name, address }, 'listening')
  log.info({ version: VERSION, state: state.path, ...(store === undefined ? {} : { store }) }, 'started')
}
