/** How a number is computed, and its limitations. */
export type Explanation = {
  readonly title: string
  readonly how: string
  readonly caveat: string
  /** Where a program reads the same number. */
  readonly source: string
}

/** One entry for each number of the page; a missing entry does not compile. */
export const EXPLANATIONS = {
  block: {
    title: 'Newest block',
    how: 'The highest block number in any frame.',
    caveat: 'The block is executed, but not final: it may still be rejected.',
    source: 'Lifecycle.block_number, ContentionData.block_number',
  },
  seq: {
    title: 'Sequence',
    how: 'The cursor of the newest frame. A client that reconnects with it gets everything after it.',
    caveat: 'Missing numbers are normal: kinds that this page does not subscribe to have numbers too.',
    source: 'seq of every frame',
  },
  gaps: {
    title: 'Gaps',
    how: 'How often frames were lost since this page was opened: in the source, in the service, or in this page.',
    caveat: 'Frames that came late after a lost connection are not a gap.',
    source: 'Warning frames ring_gap, ring_restart, backpressure, resume_out_of_window',
  },
  age: {
    title: 'Age of data',
    how: 'Time since the last live frame arrived, by the clock of this device.',
    caveat: 'Above 5 s the data is stale. A halted chain and a lagging node look the same here.',
    source: 'measured here',
  },
  clients: {
    title: 'Clients',
    how: 'Open WebSocket connections of the service, including this page. Updated every two seconds.',
    caveat: 'Connections, not users: one browser may have several.',
    source: 'GET /v1/status connected_clients',
  },
  uptime: {
    title: 'Uptime',
    how: 'Seconds since the service started.',
    caveat: 'The service restarts when the source is silent for 30 s.',
    source: 'GET /v1/status uptime_secs',
  },
  replayed: {
    title: 'Came late',
    how: 'Frames that this page received later, by resuming after a lost connection.',
    caveat: 'Frames have no time of their own; charts spread them evenly over the time offline.',
    source: 'frames up to Hello.newest_seqno after a resume',
  },
  tpsNow: {
    title: 'TPS now',
    how: 'Transactions of the last 2.5 blocks: two full blocks and half of the newest, about one second at 400 ms a block.',
    caveat:
      'Of several proposals of a block number the latest counts, also if it is rejected later. It always covers 2.5 blocks, whatever their duration; there is no value until three blocks in a row have ended.',
    source: 'TPS frames, GET /v1/tps',
  },
  tpsAverage: {
    title: 'TPS average',
    how: 'Mean of all TPS values in the selected range.',
    caveat: 'Only values this page has: the range fills up after opening.',
    source: 'TPS frames',
  },
  tpsPeak: {
    title: 'TPS peak',
    how: 'Highest TPS value in the selected range.',
    caveat: 'Neighbouring values share blocks, so a short burst counts more than once.',
    source: 'TPS frames',
  },
  stageTime: {
    title: 'Time before the stage',
    how: 'Median of the last 100 blocks: time from the previous stage to this one, by the clock of the node.',
    caveat: 'A block may skip Voted; the time then counts from Proposed.',
    source: 'Lifecycle.time_in_previous_stage_ms',
  },
  stageCount: {
    title: 'Blocks in the stage',
    how: 'Blocks whose latest stage this is, among the last 300 this page has seen.',
    caveat: 'Verified and Rejected are final stages, so their counts only grow.',
    source: 'Lifecycle.to_stage',
  },
  blockAge: {
    title: 'Age of a block at its stage',
    how: 'Time from Proposed to the latest stage, by the clock of the node.',
    caveat: 'It does not include the delay from the node to this page.',
    source: 'Lifecycle.block_age_ms',
  },
  txnCount: {
    title: 'Transactions',
    how: 'Number of transactions in the proposal.',
    caveat: 'Failed transactions count too: they are in the block.',
    source: 'Lifecycle.txn_count',
  },
  efficiency: {
    title: 'Parallel efficiency',
    how: 'max(0, sum of transaction times − wall time of the block) / sum of transaction times × 100. 90 and above: excellent; 70 to 90: some contention; below 70: significant sequential execution.',
    caveat:
      'The time of a transaction includes waiting for earlier ones and re-execution, so values above 95 are normal even with many conflicts. Compare it with the two numbers beside it.',
    source: 'ContentionData.parallel_efficiency_pct',
  },
  contendedRatio: {
    title: 'Contended slots',
    how: 'Share of the touched storage slots that two or more transactions of the block touched.',
    caveat: 'Reads count, although transactions that only read a slot do not conflict. Transient storage is excluded.',
    source: 'ContentionData.contention_ratio',
  },
  conflictShare: {
    title: 'Must wait',
    how: 'Share of transactions that touch a slot written by an earlier transaction of the block.',
    caveat: 'These are not retries, which the ring does not record. Storage only, without balances.',
    source: 'ConflictData.conflict_share',
  },
  depth: {
    title: 'Waves',
    how: 'The longest chain of dependent transactions: the minimum number of sequential steps.',
    caveat: 'A bound computed from reads and writes, not what the node did.',
    source: 'ConflictData.depth',
  },
  heat: {
    title: 'Heat strip',
    how: 'One column per block, one row per hot slot; the colour shows how many transactions touched the slot in the block.',
    caveat: 'A block lists its 20 most contended slots; other slots are empty.',
    source: 'ContentionData.top_contended_slots',
  },
  topCount: {
    title: 'Accesses',
    how: 'Accesses since the last reset, counted with the Space-Saving algorithm and 1,000 counters. Reset every five minutes.',
    caveat: 'A count may be too high by at most the smallest count kept, never too low.',
    source: 'TopAccesses frames',
  },
  topTrend: {
    title: 'Trend',
    how: 'Change of rank since the first report after the last reset; the line shows accesses per report.',
    caveat: '“new”: not among the first ten in that report.',
    source: 'TopAccesses frames, compared here',
  },
  graph: {
    title: 'Contract graph',
    how: 'A line connects two contracts whose storage was touched by the same transactions in the last 60 blocks; its width shows how many. Size: accesses. Colour: share of contended slots.',
    caveat:
      'Contracts touched together do not necessarily call each other. Each block lists only its 15 strongest pairs.',
    source: 'ContentionData.contract_edges and top_contended_contracts',
  },
  sharedTxns: {
    title: 'Shared transactions',
    how: 'Transactions of the kept blocks that touched storage of both contracts.',
    caveat: 'Each block lists only its 15 strongest pairs, so the sum is a lower bound.',
    source: 'ContentionData.contract_edges',
  },
  score: {
    title: 'Contention of a contract',
    how: 'Share of the touched slots of the contract that are contended, over the kept blocks.',
    caveat: 'Only contracts with a contended slot are listed, 15 per block.',
    source: 'ContentionData.top_contended_contracts',
  },
  slotTxns: {
    title: 'Transactions on a slot',
    how: 'Distinct transactions of a block that touched the slot.',
    caveat: 'Reads count. A block lists its 20 most contended slots.',
    source: 'ContentionData.top_contended_slots',
  },
  slotsPerBlock: {
    title: 'Contended slots of a contract',
    how: 'Slots of the contract touched by two or more transactions of a block; mean over the kept blocks that list it.',
    caveat: 'A block lists its 15 most contended contracts; other blocks are not in the mean.',
    source: 'ContentionData.top_contended_contracts',
  },
  wallTime: {
    title: 'Wall time',
    how: 'Time from the start to the end of the block’s execution, by the clock of the node.',
    caveat: 'Not the time between blocks.',
    source: 'ContentionData.block_wall_time_ns',
  },
  txnTime: {
    title: 'Transaction time',
    how: 'Sum of the execution times of all transactions.',
    caveat: 'Far above CPU time: it includes waiting and re-execution.',
    source: 'ContentionData.total_tx_time_ns',
  },
  gas: {
    title: 'Gas used',
    how: 'Gas used by the block.',
    caveat: 'Known after execution.',
    source: 'Lifecycle.gas_used',
  },
  incidents: {
    title: 'Incidents',
    how: 'Gaps, late data, rejected proposals and lost connections since this page was opened, the last 200.',
    caveat: 'Earlier incidents are in the metrics of the service.',
    source: 'Warning and Lifecycle frames, GET /v1/status, the connection',
  },
} as const satisfies Record<string, Explanation>

export type ExplanationId = keyof typeof EXPLANATIONS
