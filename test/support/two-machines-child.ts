import { startDataMachine } from './data-machine.ts'
import { startGatewayMachine } from './gateway-machine.ts'
import { respondToCalls } from './namespaces.ts'

/** One machine of the test with two gateways, in its network namespace: `data`, `ingesting` or `answering`. */
const [, , role] = process.argv
await using machine =
  role === 'data' ? await startDataMachine() : await startGatewayMachine({ ingests: role === 'ingesting' })
await respondToCalls(machine.calls)
