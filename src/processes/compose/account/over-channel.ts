import type { AccountPage } from '../../../gateway/account/page.ts'
import type { AccountReports, NoReport } from '../../../gateway/account/reports.ts'
import type { StaticFiles } from '../../../platform/http/server/static-file.ts'
import type { ControlPlaneChannel } from '../threads/protocol.ts'

/** The control plane responds within half of this; a busy one gets more. */
const REPORT_MS = 6000
/** A checkout builds the page with the first request, which may take seconds on a busy machine. */
const BUILD_MS = 60_000

/** The account reports in a gateway thread, which asks its control plane. */
export function accountReportsOver(channel: Pick<ControlPlaneChannel, 'call'>): AccountReports {
  // The control plane did not reply, or is ending.
  const late = (): NoReport => ({ ok: false, reason: 'late' })
  return {
    usage: (request) => channel.call('account-usage', request, REPORT_MS).catch(late),
    tokens: (subscriptionId) => channel.call('account-tokens', subscriptionId, REPORT_MS).catch(late),
    delivery: (subscriptionId) => channel.call('account-delivery', subscriptionId, REPORT_MS).catch(late),
  }
}

/** The account page in a gateway thread, which asks its control plane once. */
export function accountPageOver(channel: Pick<ControlPlaneChannel, 'call'>): AccountPage {
  let files: Promise<StaticFiles> | undefined
  const load = async (): Promise<StaticFiles> => {
    const found = await channel.call('account-page', undefined, BUILD_MS)
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
