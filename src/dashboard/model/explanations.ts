/** How a number comes about, and what it does not say. */
export type Explanation = {
  readonly title: string
  readonly how: string
  readonly caveat: string
  /** Where a program reads the same number. */
  readonly source: string
}

/** One entry for each number of the page; a number without an entry does not compile. */
export const EXPLANATIONS = {
  block: {
    title: 'Newest block',
    how: 'The highest block number that any frame named.',
    caveat: 'It is executed, not final: the block may still be rejected.',
    source: 'Lifecycle.block_number, ContentionData.block_number',
  },
  seq: {
    title: 'Sequence',
    how: 'The cursor of the newest frame. A client that comes back with it gets exactly what followed.',
    caveat: 'Numbers left out are normal: frames of kinds this page does not ask for take one too.',
    source: 'seq of every frame',
  },
  gaps: {
    title: 'Gaps',
    how: 'How often something was missing for good since this page was opened: in the source, in the service, or here.',
    caveat: 'What came late but complete after a lost connection is not a gap.',
    source: 'Warning frames ring_gap, ring_restart, backpressure, resume_out_of_window',
  },
  age: {
    title: 'Age of data',
    how: 'Time since the last live frame reached this page, by the clock of this device.',
    caveat: 'Above 5 s it is called stale. A chain that stands still and a node that lags look the same from here.',
    source: 'measured here',
  },
  clients: {
    title: 'Clients',
    how: 'Open WebSocket connections of the service, this page included. Asked every two seconds.',
    caveat: 'Connections, not people: one browser may hold several.',
    source: 'GET /v1/status connected_clients',
  },
  uptime: {
    title: 'Uptime',
    how: 'Whole seconds since the service started.',
    caveat: 'The service restarts by itself when the source is silent for 30 s.',
    source: 'GET /v1/status uptime_secs',
  },
  replayed: {
    title: 'Came late',
    how: 'Frames this page missed while it was not connected and got afterwards by resuming.',
    caveat: 'They carry no time of their own; in charts over time they are spread evenly over the time away.',
    source: 'frames up to Hello.newest_seqno after a resume',
  },
  tpsNow: {
    title: 'TPS now',
    how: 'Transactions of the last 2.5 blocks: two whole blocks and half of the newest, about one second at 400 ms a block.',
    caveat:
      'It counts executed proposals, also those rejected later, and is per 2.5 blocks whatever a block really takes.',
    source: 'TPS frames, GET /v1/tps',
  },
  tpsAverage: {
    title: 'TPS average',
    how: 'Mean of all TPS values within the chosen range.',
    caveat: 'Only what this page knows of: the range fills up after opening.',
    source: 'TPS frames',
  },
  tpsPeak: {
    title: 'TPS peak',
    how: 'Highest TPS value within the chosen range.',
    caveat: 'A short burst: neighbouring values share blocks.',
    source: 'TPS frames',
  },
  stageTime: {
    title: 'Time before the stage',
    how: 'Median of the last 100 blocks: time from the stage before to this one, on the clock of the node.',
    caveat: 'Skipping Voted is normal; then the time counts from Proposed.',
    source: 'Lifecycle.time_in_previous_stage_ms',
  },
  stageCount: {
    title: 'Blocks in the stage',
    how: 'Blocks whose latest stage this is, among the last 300 this page has seen.',
    caveat: 'Verified and Rejected are ends of the way, so their lanes only grow.',
    source: 'Lifecycle.to_stage',
  },
  blockAge: {
    title: 'Age of a block at its stage',
    how: 'Time from Proposed to the latest stage, on the clock of the node.',
    caveat: 'It does not include the way from the node to this page.',
    source: 'Lifecycle.block_age_ms',
  },
  txnCount: {
    title: 'Transactions',
    how: 'Number of transactions the proposal announced.',
    caveat: 'Failed transactions count too: they are in the block.',
    source: 'Lifecycle.txn_count',
  },
  efficiency: {
    title: 'Parallel efficiency',
    how: 'max(0, sum of transaction times − wall time of the block) / sum of transaction times × 100. 90 and above: excellent; 70 to 90: some contention; below 70: significant sequential execution.',
    caveat:
      'The time of a transaction includes waiting for the one before it and running again, so values in the high nineties are normal even with heavy conflicts. Read it together with the two numbers beside it.',
    source: 'ContentionData.parallel_efficiency_pct',
  },
  contendedRatio: {
    title: 'Contended slots',
    how: 'Storage slots touched by two or more transactions of the block, of all slots touched by any.',
    caveat:
      'Reading counts: two transactions that only read a slot do not disturb each other. Transient storage is left out.',
    source: 'ContentionData.contention_ratio',
  },
  conflictShare: {
    title: 'Must wait',
    how: 'Share of transactions that touch a slot which an earlier transaction of the block wrote.',
    caveat: 'Not retries: the ring does not tell of those. Storage only, balances are left out.',
    source: 'ConflictData.conflict_share',
  },
  depth: {
    title: 'Waves',
    how: 'The longest chain of transactions that must run one after the other: the least number of parallel steps.',
    caveat: 'A bound from read and write sets, not what the node really did.',
    source: 'ConflictData.depth',
  },
  heat: {
    title: 'Heat strip',
    how: 'One column for each block, one row for each of the hottest slots of these blocks; the darker or brighter, the more transactions touched the slot in the block.',
    caveat: 'A block lists its 20 most contended slots; a slot beyond them shows as empty.',
    source: 'ContentionData.top_contended_slots',
  },
  topCount: {
    title: 'Accesses',
    how: 'Accesses since the last reset, counted with the Space-Saving algorithm over 1,000 counters. Begins anew every five minutes.',
    caveat: 'A count may be too high by at most the smallest count kept, never too low.',
    source: 'TopAccesses frames',
  },
  topTrend: {
    title: 'Trend',
    how: 'Places gained or lost since the first report after the last reset; the line shows accesses from one report to the next.',
    caveat: '“new” was not among the first ten then.',
    source: 'TopAccesses frames, compared here',
  },
  graph: {
    title: 'Contract graph',
    how: 'A line joins two contracts whose storage was touched by the same transactions in the last 60 blocks: the thicker, the more. Size: accesses. Colour: share of its slots that are contended.',
    caveat: 'Touched together is not the same as calling each other. Each block names its 15 strongest pairs only.',
    source: 'ContentionData.contract_edges and top_contended_contracts',
  },
  sharedTxns: {
    title: 'Shared transactions',
    how: 'Transactions of the kept blocks that touched storage of both contracts.',
    caveat: 'Each block names its 15 strongest pairs only, so the sum is a lower bound.',
    source: 'ContentionData.contract_edges',
  },
  score: {
    title: 'Contention of a contract',
    how: 'Contended slots of all slots of the contract that some transaction touched, over the kept blocks.',
    caveat: 'Only contracts with a contended slot are listed, 15 for each block.',
    source: 'ContentionData.top_contended_contracts',
  },
  slotTxns: {
    title: 'Transactions on a slot',
    how: 'Distinct transactions of a block that touched the slot.',
    caveat: 'Reading counts. A block lists its 20 most contended slots.',
    source: 'ContentionData.top_contended_slots',
  },
  slotsPerBlock: {
    title: 'Contended slots of a contract',
    how: 'Slots of the contract touched by two or more transactions of one block: the mean over the kept blocks that list it.',
    caveat: 'A block lists its 15 most contended contracts; blocks without it are not in the mean.',
    source: 'ContentionData.top_contended_contracts',
  },
  wallTime: {
    title: 'Wall time',
    how: 'From the start to the end of the block’s execution, on the clock of the node.',
    caveat: 'Not the time between blocks.',
    source: 'ContentionData.block_wall_time_ns',
  },
  txnTime: {
    title: 'Transaction time',
    how: 'Sum of the execution times of all transactions.',
    caveat: 'Far above CPU time: waiting and running again count.',
    source: 'ContentionData.total_tx_time_ns',
  },
  gas: {
    title: 'Gas used',
    how: 'Gas used by the block.',
    caveat: 'Known from the end of execution on.',
    source: 'Lifecycle.gas_used',
  },
  incidents: {
    title: 'Incidents',
    how: 'Gaps, late data, rejected proposals and lost connections since this page was opened, the last 200.',
    caveat: 'What happened before is in the metrics of the service.',
    source: 'Warning and Lifecycle frames, GET /v1/status, the connection',
  },
} as const satisfies Record<string, Explanation>

export type ExplanationId = keyof typeof EXPLANATIONS
