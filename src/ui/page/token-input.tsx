import type { Signal } from '@preact/signals'

/** Far above the length of a token. */
const TOKEN_CHARACTERS_MAX = 256

type TokenInputProps = { text: Signal<string>; placeholder: string; hintId?: string | undefined; isFocused?: boolean }

/** The field of a token. It has no name, so that no form can make it a part of an address. */
export function TokenInput({ text, placeholder, hintId, isFocused = false }: TokenInputProps) {
  return (
    <input
      id="token"
      type="password"
      placeholder={placeholder}
      autoComplete="off"
      autoFocus={isFocused}
      spellcheck={false}
      maxLength={TOKEN_CHARACTERS_MAX}
      aria-describedby={hintId}
      value={text.value}
      onInput={(event) => {
        text.value = event.currentTarget.value
      }}
    />
  )
}
