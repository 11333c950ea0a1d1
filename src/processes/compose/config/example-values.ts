/** Values for the keys that have no default or an empty one, by path, or by name for all of that name. */
export const EXAMPLES: Readonly<Record<string, unknown>> = {
  state: '/var/lib/sluice',
  host: 'rpc.example.net',
  'bundle.rpc.publicUrl': 'https://rpc.example.net',
  'bundle.ws.publicUrl': 'wss://ws.example.net',
  'bundle.grpc.publicUrl': 'https://grpc.example.net:443',
  'sender.publicUrl': 'https://sender.example.net',
  'indexer.publicUrl': 'https://sql.example.net',
  'execution.publicUrl': 'https://stream.example.net',
  cert: 'tls/fullchain.pem',
  key: 'tls/key.pem',
  'metrics.bearer': 'file:secrets/metrics-bearer',
  'billing.sink': 'openmeter',
  'billing.url': 'https://openmeter.example.net',
  'billing.key': 'file:secrets/billing',
  'billing.subject': 'customer',
  'billing.from': '2026-11-01',
  'memory.heldBytesMax': 201_326_592,
  'memory.heldBytesPerSubscriptionMax': 50_331_648,
  'access.quota.shared': { url: 'redis://quota.internal:6379', password: 'file:secrets/redis', processesAssumed: 2 },
  'sender.rpc': [{ name: 'rpc-a', url: 'https://rpc-a.example.net', credential: 'file:secrets/rpc-a' }],
  'sender.relays': [{ name: 'relay-a', url: 'https://relay-a.example.net/api/v1/transactions', perSecond: 100 }],
  'sender.limits.signaturesPerAddressPerSecond': 40,
  'sender.checkThreads': 1,
  'sender.resendMs': 2000,
  'sender.quic.warmLeaders': 8,
  'sender.quic.identity': 'keys/identity.json',
  'execution.ring': '/dev/hugepages/monad-exec-events',
  'execution.node': { rpc: 'https://evm-node.example.net', credential: 'file:secrets/evm-node' },
  'indexer.clickhouse': {
    url: 'http://clickhouse.internal:8123',
    user: 'sluice_gateway',
    password: 'file:secrets/clickhouse',
  },
  'upstreams.nodes': [
    {
      name: 'fra-1',
      rpc: 'https://node-fra-1.example.net:8899',
      ws: 'wss://node-fra-1.example.net:8900',
      grpc: 'https://node-fra-1.example.net:10000',
      credential: 'file:secrets/fra-1',
    },
  ],
  'upstreams.health.lagSlotsMax': 25,
  'upstreams.health.shredLagSlotsMax': 100,
  'shreds.shredsPerSlotMax': 32_768,
  'shreds.window.backSlots': 64,
  'shreds.window.aheadSlots': 32,
  'localnet.accountsDir': 'accounts',
  'localnet.enabled': true,
}

/** Sentences above a key. */
export const COMMENTS: Readonly<Record<string, readonly string[]>> = {
  'access.store': [
    'For several machines: { engine = "postgres", url = "postgres://sluice@db.internal:5432/sluice", password = "file:secrets/db" }',
  ],
  'sender.tipAccounts': ['Several machines have the same list: sluice tip accounts prints that of a machine.'],
  'upstreams.nodes': [
    'Several nodes are easier to read as tables at the end of this file: [[upstreams.nodes]], then name, rpc, ws, grpc and credential on lines of their own.',
    'A node that serves one customer only is not named here: sluice node add NAME --rpc URL, then sluice node assign NAME SUB.',
  ],
}
