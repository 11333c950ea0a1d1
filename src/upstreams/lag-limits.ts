import { SLOT_MS_DEFAULT } from '../solana/slot-pace.ts'
import type { HealthOptions } from './options.ts'

export type LagLimits = Pick<HealthOptions, 'lagMsMax' | 'shredLagMsMax'>

/** A limit given in slots is a time: it was chosen when a slot had 400 ms. */
export function lagLimitsOf(options: HealthOptions): LagLimits {
  const { lagSlotsMax, shredLagSlotsMax } = options
  return {
    lagMsMax: lagSlotsMax === undefined ? options.lagMsMax : lagSlotsMax * SLOT_MS_DEFAULT,
    shredLagMsMax: shredLagSlotsMax === undefined ? options.shredLagMsMax : shredLagSlotsMax * SLOT_MS_DEFAULT,
  }
}
