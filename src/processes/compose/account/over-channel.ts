import type { AccountPage } from '../../../gateway/account/page.ts'
import type { AccountReports, NoReport } from '../../../gateway/account/reports.ts'
import type { StaticFiles } from '../../../platform/http/server/static-file.ts'
import type { ThreadChannel } from '../../../platform/process/thread-channel.ts'
import type { PageFile } from '../pages/bundle.ts'

/** The control plane responds within half of this; a busy one gets more. */
const REPORT_MS = 6000
/** A checkout builds the page with the first request, which may take seconds on a busy machine. */
const BUILD_MS = 60_000

/** The account reports in a gateway thread, which asks its control plane. */
export function accountReportsOver(channel: Pick<ThreadChannel, 'call'>): AccountReports {
  const ask = async <Report>(method: string, params: unknown): Promise<Report | NoReport> => {
    try {
      return (await channel.call(method, params, REPORT_MS)) as Report
    } catch {
      // The control plane did not reply, or is ending.
      return { ok: false, reason: 'late' }
    }
  }
  return {
    usage: (request) => ask('account-usage', request),
    tokens: (subscriptionId) => ask('account-tokens', subscriptionId),
    delivery: (subscriptionId) => ask('account-delivery', subscriptionId),
  }
}

/** The account page in a gateway thread, which asks its control plane once. */
export function accountPageOver(channel: Pick<ThreadChannel, 'call'>): AccountPage {
  let files: Promise<StaticFiles> | undefined
  const load = async (): Promise<StaticFiles> => {
    const found = (await channel.call('account-page', undefined, BUILD_MS)) as readonly PageFile[]
    const byPath = new Map(found.map((file) => [file.path, file]))
    return (path) => byPath.get(path)
  }
  return () => {
    files ??= load().catch(() => {
      files = undefined
      return () => undefined
    })
    return files
  }
}
