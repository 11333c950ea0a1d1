import type { AccessStore } from '../../../access/store/store.ts'
import { type Billing, startBilling } from '../../../admin/billing/service.ts'
import type { Settings } from '../config/settings.ts'
import type { ProcessContext } from '../process/open-process.ts'

/** Sends usage to the configured billing system, in the control plane. */
export async function openBilling(
  { config, loaded }: Settings,
  context: ProcessContext<never>,
  store: AccessStore,
): Promise<Billing | undefined> {
  const { log, clock, random, env, registry } = context
  return startBilling(config.billing, { log, clock, random, env, registry, store, folder: loaded.folder })
}
