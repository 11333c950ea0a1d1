import { z } from 'zod'
import { isAddressOrNetwork } from '../net/client-address.ts'

/** An entry of a list of addresses and networks in the configuration, refused where `createAddressSet` would refuse it at the start. */
export const networkOption = z
  .string()
  .refine(isAddressOrNetwork, 'give an address such as 192.0.2.1 or a network such as 10.0.0.0/8')
