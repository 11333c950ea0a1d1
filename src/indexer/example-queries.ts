/**
 * Example queries for the tables, in SQL that gives the same rows on both engines. They are part of docs/schema.md, and a test runs each on both
 * engines. Parameters have the form of the interface: `{name:Type}`, given as `param_name`.
 */
export type ExampleQuery = {
  readonly name: string
  /** The question that the query answers. */
  readonly question: string
  /** Ordered without ties, so that results can be compared. */
  readonly sql: string
  readonly parameters: readonly ('account' | 'mint' | 'signature')[]
}

export const EXAMPLE_QUERIES: readonly ExampleQuery[] = [
  {
    name: 'transactions-per-minute',
    question: 'How many transactions a minute, and how many of them failed?',
    sql: `SELECT toUnixTimestamp(toStartOfMinute(block_time)) AS minute, count() AS transactions,
  countIf(NOT success) AS failed, round(countIf(NOT success) / count(), 4) AS failed_share
FROM transactions GROUP BY minute ORDER BY minute`,
    parameters: [],
  },
  {
    name: 'fees-by-program',
    question: 'What does a transaction cost that calls a program, in the middle and at the upper end?',
    sql: `SELECT i.program_id AS program, count() AS calls, round(quantile(0.5)(t.fee + t.compute_units), 1) AS middle,
  round(quantile(0.95)(t.fee + t.compute_units), 1) AS upper
FROM (SELECT DISTINCT program_id, slot, tx_index FROM instructions) i
JOIN (SELECT slot, tx_index, fee, compute_units FROM transactions) t ON i.slot = t.slot AND i.tx_index = t.tx_index
GROUP BY program ORDER BY calls DESC, program LIMIT 20`,
    parameters: [],
  },
  {
    name: 'account-history',
    question: 'What happened to an account, newest first?',
    sql: `SELECT slot, tx_index, mint, pre, post FROM account_activity WHERE account = {account:String}
ORDER BY slot DESC, tx_index DESC, mint, post LIMIT 100`,
    parameters: ['account'],
  },
  {
    name: 'transfers-of-a-token',
    question: 'Who moved a token to whom?',
    sql: `SELECT slot, tx_index, ix_index, inner_index, kind, from_owner, to_owner, amount FROM token_transfers
WHERE mint = {mint:String} ORDER BY slot DESC, tx_index DESC, ix_index DESC, inner_index DESC LIMIT 100`,
    parameters: ['mint'],
  },
  {
    name: 'largest-transfers',
    question: 'Which were the largest transfers of SOL?',
    sql: `SELECT amount, from_account, to_account, signature, ix_index, inner_index FROM token_transfers WHERE kind = 'sol'
ORDER BY amount DESC, signature, ix_index, inner_index LIMIT 10`,
    parameters: [],
  },
  {
    name: 'busiest-programs',
    question: 'Which programs are called most, and by how many payers?',
    sql: `SELECT program_id, count() AS calls, uniqExact(fee_payer) AS payers, countIf(inner_index >= 0) AS by_programs
FROM instructions GROUP BY program_id ORDER BY calls DESC, program_id LIMIT 10`,
    parameters: [],
  },
  {
    name: 'new-token-accounts',
    question: 'Which accounts held a token for the first time?',
    sql: `SELECT mint, account, min(slot) AS first_slot FROM account_activity WHERE mint <> '' AND pre = 0 AND post > 0
GROUP BY mint, account ORDER BY first_slot, mint, account LIMIT 100`,
    parameters: [],
  },
  {
    name: 'blocks-by-leader',
    question: 'How many blocks did each leader make, and how full were they?',
    sql: `SELECT leader, count() AS blocks, sum(tx_count) AS transactions, max(tx_count) AS fullest
FROM blocks GROUP BY leader ORDER BY blocks DESC, leader`,
    parameters: [],
  },
  {
    name: 'vote-share',
    question: 'What part of the transactions are votes?',
    sql: `SELECT sum(vote_tx_count) AS votes, sum(tx_count) AS transactions,
  round(sum(vote_tx_count) / sum(tx_count), 4) AS share FROM blocks`,
    parameters: [],
  },
  {
    name: 'skipped-slots',
    question: 'How many slots were skipped?',
    sql: `SELECT max(slot) - min(slot) + 1 - count() AS skipped, count() AS blocks FROM blocks`,
    parameters: [],
  },
  {
    name: 'one-transaction',
    question: 'What did one transaction do?',
    sql: `SELECT t.slot AS slot, t.success AS success, t.err AS err, i.ix_index AS ix_index, i.inner_index AS inner_index,
  i.program_id AS program_id, i.accounts AS accounts
FROM (SELECT slot, tx_index, success, err FROM transactions WHERE signature = {signature:String}) t
JOIN (SELECT slot, tx_index, ix_index, inner_index, program_id, accounts FROM instructions WHERE signature = {signature:String}) i
  ON t.slot = i.slot AND t.tx_index = i.tx_index
ORDER BY ix_index, inner_index`,
    parameters: ['signature'],
  },
  {
    name: 'errors',
    question: 'Why do transactions fail?',
    sql: `SELECT err, count() AS times, uniqExact(fee_payer) AS payers FROM transactions WHERE NOT success
GROUP BY err ORDER BY times DESC, err LIMIT 10`,
    parameters: [],
  },
  {
    name: 'programs-of-an-account',
    question: 'Which programs does an account pay for?',
    sql: `SELECT program, count() AS transactions FROM
  (SELECT arrayJoin(program_ids) AS program FROM transactions WHERE fee_payer = {account:String})
GROUP BY program ORDER BY transactions DESC, program`,
    parameters: ['account'],
  },
  {
    name: 'coverage',
    question: 'What is complete, and how far behind?',
    sql: `SELECT table_name, from_slot, to_slot, lag_slots, open_gaps FROM coverage ORDER BY table_name`,
    parameters: [],
  },
]
