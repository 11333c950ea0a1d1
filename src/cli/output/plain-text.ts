// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const STEERING = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Foreign text on a terminal: control characters, escape sequences and direction marks become a visible dot. */
export function sanitizeForTerminal(text: string): string {
  return text.replaceAll(STEERING, '·')
}
