import { ERRORS } from '../../src/contract/errors.ts'
import { BATCH_MAX } from '../../src/sender/accept/rpc.ts'
import { table } from './markdown.ts'

const REFUSALS = [
  'invalid-params',
  'signature-invalid',
  'signature-count',
  'no-path',
  'not-recorded',
  'tip-missing',
  'tip-too-small',
  'tip-through-lookup-table',
  'blockhash-expired',
  'payer-cannot-pay',
  'nonce-invalid',
  'rate-limited',
] as const satisfies (keyof typeof ERRORS)[]

/** The endpoint of the sender. */
export function senderSection(): string[] {
  return [
    '## TPU Sender (8901)',
    'No token is needed; the tip grants access. One top-level transfer of the System Program (Transfer or TransferWithSeed) in the transaction pays at least `minTipLamports` to one of the tip accounts, which is a static, writable account key; the payer signs and is writable. Transfers are not summed; transfers by programs or to accounts from lookup tables do not count.',
    table(
      ['method', 'path', 'response'],
      [
        [
          'POST',
          '/, /fast',
          `JSON-RPC \`sendTransaction\` (base64 or base58; without \`encoding\` base64 is tried first, then base58), \`getTipAccounts\`, \`getHealth\`, \`getVersion\`; up to ${BATCH_MAX} calls in a batch, each counted. Preflight is never run.`,
        ],
        [
          'POST',
          '/api/v1/transactions',
          'the bytes as `application/octet-stream`, or base64 or base58 as `text/plain`; returns the signature, or nothing with `?response=none`; refusals are 400, 429 and 503. A JSON-RPC call as `application/json` is served as on `/`',
        ],
        [
          'GET',
          '/v1/transactions/{signature}',
          'the receipt: `state` (`accepted`, `sent`, `landed`, `expired`, `ended`, `unknown` after a restart or a fork), tip and whether it was paid, slot and error, every path with its result; `?wait=SECONDS` up to 60 responds when it is final. Kept for 10 minutes after that, the last 50,000 (`sender.limits.receiptsMax`).',
        ],
        ['GET', '/tips', '`{"min_tip_lamports","tip_accounts"}`'],
        ['GET', '/ping', '`ok`'],
      ],
    ),
    "Sending the same signature again returns the same response; the transaction is sent once. Refusals on `/` are HTTP 200 with a JSON-RPC error, except -32429, which is 429 with `Retry-After`, and requests that are refused as a whole (413, 415); refusals of the tip or the blockhash have `data.minTipLamports`, `data.foundLamports`, `data.tipAccounts` and `data.reason`. `@solana/kit` (8.4.0) has no messages for codes that are not Solana's and fails with a TypeError on them; the transport in [sending transactions](customers/sender.md) shows the error instead.",
    table(
      ['code', 'meaning'],
      REFUSALS.map((code) => [String(ERRORS[code].jsonRpc), ERRORS[code].sentence]),
    ),
  ]
}
