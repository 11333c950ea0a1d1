import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { lookUp } from '../../access/provisioning/context.ts'
import {
  challengeUnlessFresh,
  isOpenChallenge,
  proveDestination,
  setDestination,
  setDestinationPaused,
} from '../../access/provisioning/destinations.ts'
import type { Destination, Subscription } from '../../access/store/model.ts'
import { alignPeriod } from '../../access/usage/report.ts'
import { parseSince } from '../../contract/dates.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { checkDestination, REPORT_FILE } from '../../processes/compose/services/shreds.ts'
import { type DelayQuantiles, delayQuantiles } from '../../shreds/report/delays.ts'
import { sumDelivery } from '../../shreds/report/delivery-reports.ts'
import { type DelayRow, type DeliveryRow, openReportStore } from '../../shreds/report/store.ts'
import { askProcess } from '../control.ts'
import type { Group } from './open.ts'

type Changed = { readonly subscription: string; readonly destination: Destination }

/** A destination with what the running service reports of it; null where none runs. */
export type ListedDestination = Omit<Destination, 'revision'> & {
  readonly subscription: string
  readonly isPending: boolean
  readonly state: string | null
  readonly sent: number | null
  readonly unsent: number | null
  readonly lastFault: string | null
  readonly destinationIndex: number | null
}

export type ReportLine = DeliveryRow & DelayQuantiles & { readonly subscription: string }

export type DestinationOperations = {
  set(input: { subscription: string; address: string; vouched: boolean }): Promise<Changed>
  prove(input: { subscription: string; code: string }): Promise<Changed>
  challenge(subscription: string): Promise<Changed & { isFresh: boolean }>
  setPaused(input: { subscription: string; paused: boolean }): Promise<Changed>
  list(subscription: string | undefined): Promise<readonly ListedDestination[]>
  report(input: {
    subscription: string | undefined
    since: string
    by: 'hour' | 'day' | 'total'
  }): Promise<readonly ReportLine[]>
}

export const destinations: Group<DestinationOperations> = {
  local(session, flags) {
    const { store, nowMs, stateDir } = session
    const on = session.provisioning(flags)
    const changed = ({ subscription, destination }: { subscription: Subscription; destination: Destination }) => ({
      subscription: subscription.name,
      destination,
    })
    return {
      async set({ subscription, address, vouched }) {
        checkDestination(address, session)
        return changed(await setDestination(on, { subscription, destination: address, vouched }))
      },
      prove: async (input) => changed(await proveDestination(on, { ...input, by: 'operator' })),
      async challenge(subscription) {
        const challenged = await challengeUnlessFresh(on, { subscription })
        return { ...changed(challenged), isFresh: challenged.isFresh }
      },
      setPaused: async (input) => changed(await setDestinationPaused(on, input)),

      async list(subscription) {
        const names = new Map((await store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
        const only = subscription === undefined ? undefined : await lookUp(store, 'subscriptions', subscription)
        const live = await askProcess(stateDir, (control) => control.call('shreds'))
        return (await store.list('destinations'))
          .map((row) => ({ ...row, subscriptionId: row.id.split('/')[0] ?? '', isPending: row.id.includes('/') }))
          .filter((row) => only === undefined || row.subscriptionId === only.id)
          .filter((row) => !row.isPending || isOpenChallenge(row, nowMs))
          .map((row) => {
            const isOf = (each: { subscriptionId: string }) =>
              !row.isPending && each.subscriptionId === row.subscriptionId
            const sending = live?.destinations.find(isOf)
            return {
              ...row,
              subscription: names.get(row.subscriptionId) ?? row.subscriptionId,
              state: sending?.state ?? live?.refused.find(isOf)?.reason ?? null,
              sent: sending?.packets ?? null,
              unsent: sending?.unsent ?? null,
              lastFault: sending?.lastFault ?? null,
              destinationIndex: sending?.destinationIndex ?? null,
            }
          })
      },

      async report({ subscription, since, by }) {
        const only = subscription === undefined ? undefined : await lookUp(store, 'subscriptions', subscription)
        const names = new Map((await store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
        const { rows, delays } = await readReport(join(stateDir, ...REPORT_FILE), {
          fromMs: alignPeriod(by, { fromMs: parseSince(since, nowMs), toMs: nowMs }).fromMs,
          ...(only === undefined ? {} : { subscriptionId: only.id }),
        })
        const quantilesOf = delayQuantiles(delays, by)
        return sumDelivery(rows, by).map((row) => ({
          ...row,
          ...quantilesOf(row.hour),
          subscription: names.get(row.subscriptionId) ?? row.subscriptionId,
        }))
      },
    }
  },

  remote(api) {
    const at = (subscription: string) => ({ params: { subscription } })
    type Wire = Destination & { subscription: string; isFresh?: boolean }
    const changed = ({ subscription, isFresh = false, ...destination }: Wire) => ({
      subscription,
      destination,
      isFresh,
    })
    return {
      async set({ subscription, address, vouched }) {
        const body = { address, ...(vouched ? { vouched } : {}) }
        return changed(await api.call<Wire>('destinationSet', { ...at(subscription), body }))
      },
      prove: async ({ subscription, code }) =>
        changed(await api.call<Wire>('destinationVerify', { ...at(subscription), body: { code } })),
      challenge: async (subscription) => changed(await api.call<Wire>('destinationVerify', at(subscription))),
      setPaused: async ({ subscription, paused }) =>
        changed(await api.call<Wire>(paused ? 'destinationPause' : 'destinationResume', at(subscription))),
      list: (subscription) => api.list('destinationList', { query: { subscription } }),
      async report({ subscription, since, by }) {
        type Line = Omit<ReportLine, 'hour' | 'duplicates'> & { from?: string; duplicatesSuppressed: number }
        const lines = await api.list<Line>('shredReport', { query: { subscription, since, by } })
        return lines.map(({ from, duplicatesSuppressed, ...line }) => ({
          ...line,
          hour: from === undefined ? 0 : Date.parse(from),
          duplicates: duplicatesSuppressed,
        }))
      },
    }
  },
}

async function readReport(
  file: string,
  filter: { fromMs: number; subscriptionId?: string },
): Promise<{ rows: DeliveryRow[]; delays: DelayRow[] }> {
  if (!existsSync(file)) return { rows: [], delays: [] }
  await using store = await openReportStore(file, { clock: systemClock, random: secureRandom, create: false })
  return { rows: await store.list(filter), delays: await store.delays(filter) }
}
