import type { TopReport } from './report.ts'

/** A report with data in every section, for tests. */
export function makeReport(changes: Partial<TopReport> = {}): TopReport {
  return {
    atMs: 10_000,
    status: {
      state: 'ok',
      reasons: [],
      version: '1.2.3',
      pid: 42,
      uptimeSeconds: 3725,
      store: 'access.db',
      revision: 7,
      customers: 3,
      subscriptions: 4,
      tokens: 4,
      services: [],
      off: [],
    },
    process: { memoryBytes: 200 * 1024 * 1024, cpuSeconds: 5, loopDelaySeconds: 0.004, descriptors: 60 },
    calls: { rpc: 100, ws: 10 },
    units: 1000,
    streams: { ws: 3, grpc: 1, wsSubscriptions: 9 },
    out: { messages: 50, bytes: 5000, gapsReported: 0, slow: 0 },
    shreds: { received: 10, sent: 20, dropped: 0, destinations: 2, newestSlot: 1234, alarms: [] },
    sender: { accepted: 4, refused: 1, landed: 3, expired: 0, pending: 1, tipLamports: 1_000_000 },
    indexer: { headSlot: 1230, tipSlot: 1234, blocks: 5, queries: 2, running: 0 },
    execution: {
      tps: 812,
      blockNumber: 77,
      ageSeconds: 0.2,
      clients: 2,
      frames: 40,
      lagEvents: 0,
      gaps: 0,
      simulated: false,
    },
    upstreams: [
      {
        name: 'main',
        owner: null,
        state: 'healthy',
        reason: '',
        slot: 1234,
        lagSlots: 0,
        latencyMs: 1.5,
        breaker: 'closed',
        callsInFlight: 0,
        recentCalls: 10,
        recentFailures: 0,
        wsConnections: 1,
        wsSubscriptions: 2,
        grpcStreams: 0,
      },
    ],
    subscriptions: [
      { id: 'sub_a', name: 'acme', customer: 'acme', plan: 'build', calls: 90, units: 900, refused: 2, streams: 3 },
    ],
    refusals: [{ part: 'plan', reason: 'unitsPerSecond', count: 2 }],
    ...changes,
  }
}
