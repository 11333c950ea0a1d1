/** How a number is computed, and its limitations. */
export type Explanation = {
  readonly title: string
  /** What the number means, in one line of plain words; also the tooltip of its label. */
  readonly short: string
  readonly how: string
  readonly caveat: string
  /** Where a program reads the same number. */
  readonly source: string
}

/** One entry for each number of the page; a missing entry does not compile. */
export const EXPLANATIONS = {
  block: {
    title: 'Newest block',
    short: 'The newest block that was executed.',
    how: 'The highest block number in any frame.',
    caveat: 'The block is executed, but not final: it may still be rejected.',
    source: 'Lifecycle.block_number, ContentionData.block_number',
  },
  seq: {
    title: 'Position in the stream',
    short: 'The position of this page in the stream of the service.',
    how: 'The number of the newest message. A client that reconnects with it gets everything after it.',
    caveat: 'It grows in steps: messages that this page does not ask for have numbers too.',
    source: 'seq of every frame',
  },
  gaps: {
    title: 'Gaps',
    short: 'How often data was lost and did not come back.',
    how: 'Counted since this page was opened: losses between node and service, in the service, and in this page.',
    caveat: 'Data that came late after a lost connection is not a gap.',
    source: 'Warning frames ring_gap, ring_restart, backpressure, resume_out_of_window',
  },
  age: {
    title: 'Last data',
    short: 'When the last data arrived. Above 5 seconds it is late.',
    how: 'Time since the last message arrived, by the clock of this device.',
    caveat: 'A chain that stopped and a node that is behind look the same here.',
    source: 'measured here',
  },
  clients: {
    title: 'Clients',
    short: 'Open connections to the live stream.',
    how: 'Open WebSocket connections of the service, including this page. Updated every two seconds.',
    caveat: 'Connections, not users: one browser may have several.',
    source: 'GET /v1/status connected_clients',
  },
  uptime: {
    title: 'Running',
    short: 'How long the service has been running.',
    how: 'Time since the service started.',
    caveat: 'The service restarts when the source is silent for 30 s.',
    source: 'GET /v1/status uptime_secs',
  },
  replayed: {
    title: 'Came late',
    short: 'Messages that came after a lost connection.',
    how: 'After a lost connection the page continues where it was and gets what it missed: these messages came late, none is lost.',
    caveat:
      'Messages have no time of their own; the charts take the time without connection from the history of the service.',
    source: 'frames up to Hello.newest_seqno after a resume',
  },
  tpsNow: {
    title: 'TPS now',
    short: 'Transactions per second, right now.',
    how: 'Transactions of the last 2.5 blocks: two full blocks and half of the newest, about one second at 400 ms a block.',
    caveat:
      'Of several proposals of a block number the latest counts, also if it is rejected later. It always covers 2.5 blocks, whatever their duration; there is no value until three blocks in a row have ended.',
    source: 'TPS frames, GET /v1/tps',
  },
  tpsAverage: {
    title: 'TPS average',
    short: 'Transactions per second, on average over the chart.',
    how: 'Mean of all TPS values in the selected range.',
    caveat: 'The service keeps the last hour, over restarts too. What happened while it did not run is a gap.',
    source: 'GET /v1/history seconds.tps, TPS frames',
  },
  tpsPeak: {
    title: 'TPS peak',
    short: 'The most transactions per second in the chart.',
    how: 'Highest TPS value in the selected range.',
    caveat: 'Neighbouring values share blocks, so a short burst counts more than once.',
    source: 'TPS frames',
  },
  stageTime: {
    title: 'Usual wait before the stage',
    short: 'How long a block usually waits before it reaches the stage.',
    how: 'Median of the last 100 blocks: time from the previous stage to this one, by the clock of the node.',
    caveat: 'A block may skip Voted; the time then counts from Proposed.',
    source: 'Lifecycle.time_in_previous_stage_ms',
  },
  stageCount: {
    title: 'Blocks in the stage',
    short: 'How many of the last blocks are in the stage now.',
    how: 'Blocks whose latest stage this is, among the last 300 this page has seen.',
    caveat: 'Verified and Rejected are the last stages, so their counts only grow.',
    source: 'Lifecycle.to_stage',
  },
  blockAge: {
    title: 'Age of a block at its stage',
    short: 'How long a block needed from its proposal to each stage.',
    how: 'Time from Proposed to the latest stage, by the clock of the node.',
    caveat: 'It does not include the delay from the node to this page.',
    source: 'Lifecycle.block_age_ms',
  },
  txnCount: {
    title: 'Transactions',
    short: 'Transactions in the block.',
    how: 'Number of transactions in the proposal.',
    caveat: 'Failed transactions count too: they are in the block.',
    source: 'Lifecycle.txn_count',
  },
  transactions: {
    title: 'Transactions of the block',
    short: 'In their order in the block. Click a hash to copy it.',
    how: 'Number in the block, hash, called contract, result and gas used, of the proposal that was executed last or finalized.',
    caveat: 'The service holds the last blocks only.',
    source: 'GET /v1/blocks/:number/transactions',
  },
  storageAccesses: {
    title: 'Storage accesses',
    short: 'How often transactions read or wrote storage of the contract in these blocks.',
    how: 'Sum over the held blocks in which the contract is among the 32 most accessed or the 15 most contended ones.',
    caveat: 'Blocks that use it less are not in the sum.',
    source: 'GET /v1/contracts/:address storage',
  },
  efficiency: {
    title: 'Parallel efficiency',
    short: 'How much of the work ran side by side. 90 and above is good, below 70 is poor.',
    how: 'max(0, sum of transaction times − wall time of the block) / sum of transaction times × 100. 90 and above: excellent parallelization; 70 to 90: some waiting on conflicts; below 70: much runs one after the other.',
    caveat:
      'The time of a transaction includes waiting for earlier ones and re-execution, so values above 95 are normal even with many conflicts. Compare it with the two numbers beside it.',
    source: 'ContentionData.parallel_efficiency_pct',
  },
  contendedRatio: {
    title: 'Contended slots',
    short: 'Storage slots that two or more transactions of the block used.',
    how: 'Share of the touched storage slots that two or more transactions of the block touched.',
    caveat: 'Reads count, although transactions that only read a slot do not conflict. Transient storage is excluded.',
    source: 'ContentionData.contention_ratio',
  },
  conflictShare: {
    title: 'Waiting on conflicts',
    short: 'Transactions that cannot run before an earlier one of the block has finished.',
    how: 'Share of transactions that touch a slot written by an earlier transaction of the block.',
    caveat: 'These are not retries, which the ring does not record. Storage only, without balances.',
    source: 'ConflictData.conflict_share',
  },
  depth: {
    title: 'Parallel waves',
    short: 'Steps that must run one after the other; the transactions of one step run in parallel.',
    how: 'The transactions of one wave do not touch what another one of the wave writes and can run in parallel; each wave waits for the one before it. One wave is the best value.',
    caveat: 'Computed from reads and writes: what is possible, not what the node did.',
    source: 'ConflictData.depth',
  },
  heat: {
    title: 'Busiest storage slots',
    short: 'Which storage slots many transactions wanted, block by block.',
    how: 'One column per block, one row per hot slot; the colour shows how many transactions touched the slot in the block.',
    caveat: 'A block lists its 20 most contended slots; other slots are empty.',
    source: 'ContentionData.top_contended_slots',
  },
  topCount: {
    title: 'Accesses',
    short: 'How often contracts were read or written since the last reset.',
    how: 'Accesses since the last reset, counted with the Space-Saving algorithm and 1,000 counters. Reset every five minutes.',
    caveat: 'A count may be too high by at most the smallest count kept, never too low.',
    source: 'TopAccesses frames',
  },
  topTrend: {
    title: 'Trend',
    short: 'Places gained or lost since the last reset.',
    how: 'Change of rank since the first report after the last reset; the line shows accesses per report.',
    caveat: '“new”: not among the first ten in that report.',
    source: 'TopAccesses frames, compared here',
  },
  graph: {
    title: 'Contracts used together',
    short: 'Contracts that the same transactions use.',
    how: 'A line connects two contracts whose storage was touched by the same transactions in the last 60 blocks; its width shows how many. Size: accesses. Colour: share of contended slots.',
    caveat:
      'Contracts touched together do not necessarily call each other. Each block lists only its 15 strongest pairs.',
    source: 'ContentionData.contract_edges and top_contended_contracts',
  },
  sharedTxns: {
    title: 'Shared transactions',
    short: 'Transactions that used both contracts.',
    how: 'Transactions of the kept blocks that touched storage of both contracts.',
    caveat: 'Each block lists only its 15 strongest pairs, so the sum is a lower bound.',
    source: 'ContentionData.contract_edges',
  },
  score: {
    title: 'Contention of a contract',
    short: 'How many of the slots of the contract are used by two or more transactions of a block.',
    how: 'Share of the touched slots of the contract that are contended, over the kept blocks.',
    caveat: 'Only contracts with a contended slot are listed, 15 per block.',
    source: 'ContentionData.top_contended_contracts',
  },
  slotTxns: {
    title: 'Transactions on a slot',
    short: 'Transactions of the block that used the slot.',
    how: 'Distinct transactions of a block that touched the slot.',
    caveat: 'Reads count. A block lists its 20 most contended slots.',
    source: 'ContentionData.top_contended_slots',
  },
  slotsPerBlock: {
    title: 'Contended slots of a contract',
    short: 'Slots of the contract that two or more transactions of a block used.',
    how: 'Slots of the contract touched by two or more transactions of a block; mean over the kept blocks that list it.',
    caveat: 'A block lists its 15 most contended contracts; other blocks are not in the mean.',
    source: 'ContentionData.top_contended_contracts',
  },
  wallTime: {
    title: 'Execution time',
    short: 'How long the block took to execute.',
    how: 'Time from the start to the end of the block’s execution, by the clock of the node.',
    caveat: 'Not the time between blocks.',
    source: 'ContentionData.block_wall_time_ns',
  },
  txnTime: {
    title: 'Transaction time',
    short: 'The execution times of all transactions, added up.',
    how: 'Sum of the execution times of all transactions.',
    caveat: 'Far above CPU time: it includes waiting and re-execution.',
    source: 'ContentionData.total_tx_time_ns',
  },
  gas: {
    title: 'Gas used',
    short: 'The work of the block, as gas.',
    how: 'Gas used by the block.',
    caveat: 'Known after execution.',
    source: 'Lifecycle.gas_used',
  },
  gasRate: {
    title: 'Gas used over time',
    short: 'Gas that the blocks use per second.',
    how: 'Gas of the blocks that ended in a step of the chart, divided by its length: 2 s, or 5 s above a quarter of an hour. The number is the average of the chart.',
    caveat: 'Of several proposals of a block number the first one counts.',
    source: 'GET /v1/history seconds.gas_used, Lifecycle.gas_used',
  },
  blockTime: {
    title: 'Block time',
    short: 'Time from one block to the next.',
    how: 'Time from the proposal of the block before it to its own. The number is the average of the chart.',
    caveat: 'New blocks are timed when they arrive here, so that a slow connection moves single values.',
    source: 'GET /v1/history seconds.block_time_ms, Lifecycle frames',
  },
  time: {
    title: 'Time of the block',
    short: 'When the block was proposed, by the clock of this device.',
    how: 'The time of the history of the service, moved to the clock of this device; of a new block: when its first message arrived.',
    caveat: 'The chain itself has times in whole seconds only.',
    source: 'GET /v1/history blocks.time_ms',
  },
  incidents: {
    title: 'Incidents',
    short: 'What went wrong, and when it was over.',
    how: 'Gaps, late data, rejected blocks and lost connections, the last 200.',
    caveat: 'Those from before this page was opened come from the service, which keeps them over restarts.',
    source: 'GET /v1/history incidents, Warning and Lifecycle frames, GET /v1/status, the connection',
  },
} as const satisfies Record<string, Explanation>

export type ExplanationId = keyof typeof EXPLANATIONS
