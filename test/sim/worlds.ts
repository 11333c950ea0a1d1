import { hubWorld } from './hub-world.ts'
import { ledgerWorld } from './ledger-world.ts'
import { poolWorld } from './pool-world.ts'
import type { SimWorld } from './run-seeds.ts'
import { sharedLedgerWorld } from './shared-ledger-world.ts'
import { sharedPermitsWorld } from './shared-permits-world.ts'
import { sharedQuotaFloorWorld } from './shared-quota-floor-world.ts'
import { tokenStoreWorld } from './token-store-world.ts'

export const WORLDS: readonly SimWorld[] = [
  hubWorld,
  ledgerWorld,
  sharedLedgerWorld,
  sharedPermitsWorld,
  sharedQuotaFloorWorld,
  poolWorld,
  tokenStoreWorld,
]
