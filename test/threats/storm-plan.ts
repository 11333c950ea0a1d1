import { BUILT_IN_PLANS, type Plans } from '../../src/access/plan.ts'

/** A budget that a storm reaches, with enough permits that only the budget refuses. */
export const STORM_UNITS_PER_SECOND = 60

export const STORM_PLANS: Plans = {
  ...BUILT_IN_PLANS,
  storm: {
    ...BUILT_IN_PLANS.professional,
    unitsPerSecond: STORM_UNITS_PER_SECOND,
    sendsPerSecond: null,
    wsConnections: null,
    wsSubscriptions: null,
    grpcStreams: null,
  },
}

/** The same plan in a configuration file. */
export const STORM_CONFIG = `
[plans.storm]
unitsPerSecond = ${STORM_UNITS_PER_SECOND}
sendsPerSecond = "unlimited"
wsConnections = "unlimited"
wsSubscriptions = "unlimited"
grpcStreams = "unlimited"
grpcAccountsPerStream = "unlimited"
`
