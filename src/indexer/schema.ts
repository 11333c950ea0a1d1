/**
 * The tables of the indexer. The DDL of both engines, the writers' columns and docs/schema.md are made from this list.
 */

export type ColumnType =
  | 'u64'
  | 'u32'
  | 'u16'
  | 'u8'
  | 'i64'
  | 'i16'
  | 'bool'
  /** Seconds since 1970, UTC; 0 where the chain has no time. */
  | 'time'
  /** Text with many different values: signatures, wallets, mints. */
  | 'text'
  /** Text with few different values: programs, leaders, errors. */
  | 'word'
  | 'texts'
  | 'words'

export type Column = {
  readonly name: string
  readonly type: ColumnType
  readonly help: string
  /** Chooses ClickHouse's compression codec: `rising` numbers grow from row to row, `amount`s do not. */
  readonly codec?: 'rising' | 'amount'
  /** ClickHouse only: a bloom filter, for lookups that the sort order does not serve. */
  readonly isLookedUp?: true
}

export type Table = {
  readonly name: TableName
  readonly help: string
  /** Identifies a row; also ClickHouse's sort order. */
  readonly key: readonly string[]
  readonly columns: readonly Column[]
}

export type TableName =
  | 'blocks'
  | 'transactions'
  | 'instructions'
  | 'token_transfers'
  | 'account_activity'
  | 'accounts'
  | 'rewards'

const SLOT: Column = { name: 'slot', type: 'u64', help: 'the slot of the block', codec: 'rising' }
const BLOCK_TIME: Column = {
  name: 'block_time',
  type: 'time',
  help: 'when the block was made, as its validators vote; 1970-01-01 where the chain has no time',
  codec: 'rising',
}
const TX_INDEX: Column = {
  name: 'tx_index',
  type: 'u32',
  help: 'index of the transaction in its block',
  codec: 'rising',
}
const SIGNATURE: Column = { name: 'signature', type: 'text', help: 'first signature of the transaction, base58' }

export const TABLES: readonly Table[] = [
  {
    name: 'blocks',
    help: 'One row for each block. A slot without a row was skipped if it is inside a range that `coverage` reports as complete.',
    key: ['slot'],
    columns: [
      SLOT,
      BLOCK_TIME,
      {
        name: 'block_height',
        type: 'u64',
        help: 'number of blocks before it; smaller than the slot by the number of skipped slots',
        codec: 'rising',
      },
      { name: 'blockhash', type: 'text', help: 'hash of the block, base58' },
      { name: 'parent_slot', type: 'u64', help: 'slot of the block before it', codec: 'rising' },
      { name: 'parent_blockhash', type: 'text', help: 'hash of the block before it' },
      {
        name: 'leader',
        type: 'word',
        help: 'the validator that made it, from the fee reward; empty where there is none',
      },
      { name: 'tx_count', type: 'u32', help: 'transactions in the block, votes included' },
      { name: 'vote_tx_count', type: 'u32', help: 'of these, simple votes' },
      {
        name: 'commitment',
        type: 'word',
        help: '`confirmed` or `finalized`, as known when it was last written',
      },
      { name: 'source', type: 'word', help: '`stream` or `backfill`: where the block came from' },
    ],
  },
  {
    name: 'transactions',
    help: 'One row for each transaction, failed ones too. Votes are omitted unless the operator includes them.',
    key: ['slot', 'tx_index'],
    columns: [
      SLOT,
      BLOCK_TIME,
      TX_INDEX,
      { ...SIGNATURE, isLookedUp: true },
      { name: 'fee_payer', type: 'text', help: 'the account that pays the fee: the first key' },
      { name: 'signers', type: 'texts', help: 'every key that signed, the fee payer first' },
      { name: 'is_vote', type: 'bool', help: 'a simple vote, by the rule of the runtime' },
      { name: 'success', type: 'bool', help: 'whether it took effect' },
      {
        name: 'err',
        type: 'word',
        help: 'name of the error, or its JSON as getTransaction shows it; empty when there is none',
      },
      { name: 'fee', type: 'u64', help: 'lamports', codec: 'amount' },
      { name: 'compute_units', type: 'u64', help: 'compute units used', codec: 'amount' },
      {
        name: 'cost_units',
        type: 'u64',
        help: 'cost of the transaction in the block, as the scheduler counts it; 0 where the node does not report it',
        codec: 'amount',
      },
      { name: 'version', type: 'word', help: '`legacy`, `0` or `1`' },
      { name: 'recent_blockhash', type: 'text', help: 'the blockhash or nonce it was signed with' },
      {
        name: 'account_keys',
        type: 'texts',
        help: 'static keys, then keys loaded for writing, then those loaded for reading',
        isLookedUp: true,
      },
      {
        name: 'program_ids',
        type: 'words',
        help: 'programs of its instructions, each once, in order of appearance',
        isLookedUp: true,
      },
      { name: 'log_messages', type: 'texts', help: 'log lines; empty unless the operator keeps them' },
    ],
  },
  {
    name: 'instructions',
    help: 'One row for each instruction of the transactions table, those that programs call included.',
    key: ['program_id', 'slot', 'tx_index', 'ix_index', 'inner_index'],
    columns: [
      SLOT,
      BLOCK_TIME,
      TX_INDEX,
      SIGNATURE,
      { name: 'ix_index', type: 'u16', help: 'index of the outer instruction in its transaction' },
      {
        name: 'inner_index',
        type: 'i16',
        help: 'index among the calls of that instruction; -1 for the instruction itself',
      },
      { name: 'stack_height', type: 'u8', help: '1 for the instruction itself, 2 and more for what is called' },
      { name: 'program_id', type: 'word', help: 'the program that runs' },
      { name: 'outer_program_id', type: 'word', help: 'the program of the outer instruction' },
      { name: 'accounts', type: 'texts', help: 'the accounts passed to it, in order' },
      { name: 'data', type: 'text', help: 'its data, base58' },
      {
        name: 'd8',
        type: 'u64',
        help: 'the first eight bytes of the data as a little-endian number, 0 when shorter: the discriminator of Anchor programs',
      },
      { name: 'tx_success', type: 'bool', help: 'whether the transaction took effect' },
      { name: 'fee_payer', type: 'text', help: 'the account that pays the fee of the transaction' },
    ],
  },
  {
    name: 'token_transfers',
    help: 'Tokens and SOL that moved in transactions that took effect, one row for each transfer, mint or burn instruction.',
    key: ['mint', 'slot', 'tx_index', 'ix_index', 'inner_index'],
    columns: [
      SLOT,
      BLOCK_TIME,
      TX_INDEX,
      SIGNATURE,
      { name: 'ix_index', type: 'u16', help: 'index of the outer instruction' },
      { name: 'inner_index', type: 'i16', help: 'index among its calls; -1 for the instruction itself' },
      { name: 'kind', type: 'word', help: '`transfer`, `transferChecked`, `mintTo`, `burn` or `sol`' },
      { name: 'token_program', type: 'word', help: 'the token program; the System Program for SOL' },
      { name: 'mint', type: 'text', help: 'the token; empty for SOL' },
      { name: 'from_account', type: 'text', help: 'source account; empty for a mint' },
      { name: 'to_account', type: 'text', help: 'destination account; empty for a burn' },
      {
        name: 'from_owner',
        type: 'text',
        help: 'wallet behind `from_account`, from the token balances; the account itself for SOL',
        isLookedUp: true,
      },
      { name: 'to_owner', type: 'text', help: 'wallet behind `to_account`', isLookedUp: true },
      { name: 'amount', type: 'u64', help: 'in the smallest unit', codec: 'amount' },
      { name: 'decimals', type: 'u8', help: 'digits after the point; 9 for SOL' },
    ],
  },
  {
    name: 'account_activity',
    help: 'One row for each account and token that a transaction changed or signed for: the history of an address, in order.',
    key: ['account', 'slot', 'tx_index', 'mint'],
    columns: [
      SLOT,
      BLOCK_TIME,
      TX_INDEX,
      SIGNATURE,
      { name: 'account', type: 'text', help: 'the address' },
      { name: 'mint', type: 'text', help: 'the token of the balance; empty for SOL' },
      { name: 'pre', type: 'u64', help: 'balance before', codec: 'amount' },
      { name: 'post', type: 'u64', help: 'balance after', codec: 'amount' },
      { name: 'signed', type: 'bool', help: 'whether it signed' },
      { name: 'writable', type: 'bool', help: 'whether the transaction could change it' },
    ],
  },
  {
    name: 'accounts',
    help: 'The latest state of each account that changed while the stream was followed; a backfill adds none.',
    key: ['pubkey'],
    columns: [
      { name: 'pubkey', type: 'text', help: 'the address' },
      { name: 'owner', type: 'word', help: 'the program that owns it' },
      SLOT,
      { name: 'write_version', type: 'u64', help: 'order of writes on the node that reported it', codec: 'rising' },
      { name: 'lamports', type: 'u64', help: 'balance', codec: 'amount' },
      { name: 'executable', type: 'bool', help: 'whether it is a program' },
      { name: 'rent_epoch', type: 'u64', help: 'as the node reports it' },
      { name: 'data', type: 'text', help: 'its data, base64' },
      { name: 'txn_signature', type: 'text', help: 'the transaction that wrote it; empty where none did' },
    ],
  },
  {
    name: 'rewards',
    help: 'Fees, votes, stakes and rent paid out with a block.',
    key: ['slot', 'pubkey', 'reward_type'],
    columns: [
      SLOT,
      BLOCK_TIME,
      { name: 'pubkey', type: 'text', help: 'the account that received it' },
      { name: 'reward_type', type: 'word', help: '`Fee`, `Rent`, `Staking`, `Voting` or `DeactivatedStake`' },
      { name: 'lamports', type: 'i64', help: 'paid; negative when taken', codec: 'amount' },
      { name: 'post_balance', type: 'u64', help: 'balance afterwards', codec: 'amount' },
      { name: 'commission', type: 'i16', help: 'percent kept by the validator; -1 where none applies' },
    ],
  },
]

/** Raised when the meaning of a column changes. */
export const DECODER_VERSION = 1

/** The view that states which slots are complete. */
export const COVERAGE = {
  name: 'coverage',
  help: 'What is complete, from where to where, and how far behind the chain.',
  columns: [
    { name: 'table_name', type: 'word', help: 'the table' },
    { name: 'from_slot', type: 'u64', help: 'first slot of the newest range without a gap' },
    { name: 'to_slot', type: 'u64', help: 'last slot of that range: everything up to here is in the table' },
    { name: 'from_time', type: 'time', help: 'time of the first block of that range' },
    { name: 'to_time', type: 'time', help: 'time of its last block' },
    { name: 'tip_slot', type: 'u64', help: 'newest slot that the node has reported' },
    { name: 'lag_slots', type: 'u64', help: 'number of slots that `to_slot` is behind it' },
    { name: 'lag_seconds', type: 'i64', help: 'age of the last block' },
    { name: 'open_gaps', type: 'u64', help: 'gaps between older ranges and this one' },
    { name: 'retention_slots', type: 'u64', help: 'how many slots are kept; 0 for all' },
    { name: 'decoder_version', type: 'u32', help: 'raised when the meaning of a column changes' },
  ] satisfies readonly Column[] as readonly Column[],
} as const

/** Name of the database that customers of the embedded engine see. */
export const DATABASE = 'solana'
/** Tables and views that customers may query. */
export const PUBLISHED: readonly Pick<Table | typeof COVERAGE, 'name' | 'help' | 'columns'>[] = [...TABLES, COVERAGE]
export const PUBLISHED_NAMES: ReadonlySet<string> = new Set(PUBLISHED.map(({ name }) => name))

export function tableOf(name: TableName): Table {
  const table = TABLES.find((each) => each.name === name)
  if (table === undefined) throw new RangeError(`no table ${name}`)
  return table
}

/** ClickHouse's names of the column types, as DESCRIBE lists them. */
export const CLICKHOUSE_TYPES: Readonly<Record<ColumnType, string>> = {
  u64: 'UInt64',
  u32: 'UInt32',
  u16: 'UInt16',
  u8: 'UInt8',
  i64: 'Int64',
  i16: 'Int16',
  bool: 'Bool',
  time: "DateTime('UTC')",
  text: 'String',
  word: 'LowCardinality(String)',
  texts: 'Array(String)',
  words: 'Array(LowCardinality(String))',
}
