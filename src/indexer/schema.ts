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

type ColumnExtras = Pick<Column, 'codec' | 'isLookedUp'>

function column(name: string, type: ColumnType, help: string, extras: ColumnExtras = {}): Column {
  return { name, type, help, ...extras }
}

const SLOT = column('slot', 'u64', 'the slot of the block', { codec: 'rising' })
const BLOCK_TIME = column(
  'block_time',
  'time',
  'when the block was made, as its validators vote; 1970-01-01 where the chain has no time',
  { codec: 'rising' },
)
const TX_INDEX = column('tx_index', 'u32', 'index of the transaction in its block', { codec: 'rising' })
const SIGNATURE = column('signature', 'text', 'first signature of the transaction, base58')

export const TABLES: readonly Table[] = [
  {
    name: 'blocks',
    help: 'One row for each block. A slot without a row was skipped if it is inside a range that `coverage` reports as complete.',
    key: ['slot'],
    columns: [
      SLOT,
      BLOCK_TIME,
      column(
        'block_height',
        'u64',
        'number of blocks before it; smaller than the slot by the number of skipped slots',
        { codec: 'rising' },
      ),
      column('blockhash', 'text', 'hash of the block, base58'),
      column('parent_slot', 'u64', 'slot of the block before it', { codec: 'rising' }),
      column('parent_blockhash', 'text', 'hash of the block before it'),
      column('leader', 'word', 'the validator that made it, from the fee reward; empty where there is none'),
      column('tx_count', 'u32', 'transactions in the block, votes included'),
      column('vote_tx_count', 'u32', 'of these, simple votes'),
      column('commitment', 'word', '`confirmed` or `finalized`, as known when it was last written'),
      column('source', 'word', '`stream` or `backfill`: where the block came from'),
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
      column('fee_payer', 'text', 'the account that pays the fee: the first key'),
      column('signers', 'texts', 'every key that signed, the fee payer first'),
      column('is_vote', 'bool', 'a simple vote, by the rule of the runtime'),
      column('success', 'bool', 'whether it took effect'),
      column('err', 'word', 'name of the error, or its JSON as getTransaction shows it; empty when there is none'),
      column('fee', 'u64', 'lamports', { codec: 'amount' }),
      column('compute_units', 'u64', 'compute units used', { codec: 'amount' }),
      column(
        'cost_units',
        'u64',
        'cost of the transaction in the block, as the scheduler counts it; 0 where the node does not report it',
        { codec: 'amount' },
      ),
      column('version', 'word', '`legacy`, `0` or `1`'),
      column('recent_blockhash', 'text', 'the blockhash or nonce it was signed with'),
      column('account_keys', 'texts', 'static keys, then keys loaded for writing, then those loaded for reading', {
        isLookedUp: true,
      }),
      column('program_ids', 'words', 'programs of its instructions, each once, in order of appearance', {
        isLookedUp: true,
      }),
      column('log_messages', 'texts', 'log lines; empty unless the operator keeps them'),
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
      column('ix_index', 'u16', 'index of the outer instruction in its transaction'),
      column('inner_index', 'i16', 'index among the calls of that instruction; -1 for the instruction itself'),
      column('stack_height', 'u8', '1 for the instruction itself, 2 and more for what is called'),
      column('program_id', 'word', 'the program that runs'),
      column('outer_program_id', 'word', 'the program of the outer instruction'),
      column('accounts', 'texts', 'the accounts passed to it, in order'),
      column('data', 'text', 'its data, base58'),
      column(
        'd8',
        'u64',
        'the first eight bytes of the data as a little-endian number, 0 when shorter: the discriminator of Anchor programs',
      ),
      column('tx_success', 'bool', 'whether the transaction took effect'),
      column('fee_payer', 'text', 'the account that pays the fee of the transaction'),
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
      column('ix_index', 'u16', 'index of the outer instruction'),
      column('inner_index', 'i16', 'index among its calls; -1 for the instruction itself'),
      column('kind', 'word', '`transfer`, `transferChecked`, `mintTo`, `burn` or `sol`'),
      column('token_program', 'word', 'the token program; the System Program for SOL'),
      column('mint', 'text', 'the token; empty for SOL'),
      column('from_account', 'text', 'source account; empty for a mint'),
      column('to_account', 'text', 'destination account; empty for a burn'),
      column(
        'from_owner',
        'text',
        'wallet behind `from_account`, from the token balances; the account itself for SOL',
        { isLookedUp: true },
      ),
      column('to_owner', 'text', 'wallet behind `to_account`', { isLookedUp: true }),
      column('amount', 'u64', 'in the smallest unit', { codec: 'amount' }),
      column('decimals', 'u8', 'digits after the point; 9 for SOL'),
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
      column('account', 'text', 'the address'),
      column('mint', 'text', 'the token of the balance; empty for SOL'),
      column('pre', 'u64', 'balance before', { codec: 'amount' }),
      column('post', 'u64', 'balance after', { codec: 'amount' }),
      column('signed', 'bool', 'whether it signed'),
      column('writable', 'bool', 'whether the transaction could change it'),
    ],
  },
  {
    name: 'accounts',
    help: 'The latest state of each account that changed while the stream was followed; a backfill adds none.',
    key: ['pubkey'],
    columns: [
      column('pubkey', 'text', 'the address'),
      column('owner', 'word', 'the program that owns it'),
      SLOT,
      column('write_version', 'u64', 'order of writes on the node that reported it', { codec: 'rising' }),
      column('lamports', 'u64', 'balance', { codec: 'amount' }),
      column('executable', 'bool', 'whether it is a program'),
      column('rent_epoch', 'u64', 'as the node reports it'),
      column('data', 'text', 'its data, base64'),
      column('txn_signature', 'text', 'the transaction that wrote it; empty where none did'),
    ],
  },
  {
    name: 'rewards',
    help: 'Fees, votes, stakes and rent paid out with a block.',
    key: ['slot', 'pubkey', 'reward_type'],
    columns: [
      SLOT,
      BLOCK_TIME,
      column('pubkey', 'text', 'the account that received it'),
      column('reward_type', 'word', '`Fee`, `Rent`, `Staking`, `Voting` or `DeactivatedStake`'),
      column('lamports', 'i64', 'paid; negative when taken', { codec: 'amount' }),
      column('post_balance', 'u64', 'balance afterwards', { codec: 'amount' }),
      column('commission', 'i16', 'percent kept by the validator; -1 where none applies'),
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
    column('table_name', 'word', 'the table'),
    column('from_slot', 'u64', 'first slot of the newest range without a gap'),
    column('to_slot', 'u64', 'last slot of that range: everything up to here is in the table'),
    column('from_time', 'time', 'time of the first block of that range'),
    column('to_time', 'time', 'time of its last block'),
    column('tip_slot', 'u64', 'newest slot that the node has reported'),
    column('lag_slots', 'u64', 'number of slots that `to_slot` is behind it'),
    column('lag_seconds', 'i64', 'age of the last block'),
    column('open_gaps', 'u64', 'gaps between older ranges and this one'),
    column('retention_slots', 'u64', 'how many slots are kept; 0 for all'),
    column('decoder_version', 'u32', 'raised when the meaning of a column changes'),
    column(
      'finalized_slot',
      'u64',
      'rows up to this slot are of final blocks; later ones may be replaced by those of another block',
    ),
    column(
      'missing_slots',
      'texts',
      'the open gaps as `first-last`, oldest first: their blocks are not in the tables, because no node had them any more or the operator has not loaded them',
    ),
  ] as readonly Column[],
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
