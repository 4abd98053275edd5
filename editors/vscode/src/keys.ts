// The list of keys, made from the manifest, so that it agrees with VS Code. No `vscode` here.

export interface Contributions {
  commands: { command: string; title: string }[]
  keybindings: { command: string; key: string; when?: string }[]
}

/** The condition of the keys that are SLIME's. */
export const SLIME = 'config.consort.keys == slime'
/** The condition of the keys that delete without unbalancing. */
export const STRICT = 'config.consort.structure.strict'
/** The condition of the keys of the macro stepper, whose text is read-only. */
export const STEPPER = 'resourceScheme == consort-macrostep'

/** A key as it is printed on a keyboard: `ctrl+alt+l shift+r` is `Ctrl+Alt+L Shift+R`. */
export const printed = (key: string): string => key.replace(/[a-z]+|[0-9]/g, (word) => word.charAt(0).toUpperCase() + word.slice(1))

/** A table of the commands that have keys, in the manifest's order. */
export function keySheet({ commands, keybindings }: Contributions, slime: boolean, strict = false): string {
  const isSlime = ({ when }: { when?: string }): boolean => when?.includes(SLIME) === true
  const on = keybindings.filter((one) => (slime || !isSlime(one)) && (strict || one.when?.includes(STRICT) !== true))
  const shown = on.sort((one, other) => Number(isSlime(one)) - Number(isSlime(other)))
  const rows = commands.flatMap(({ command, title }) => {
    const keys = shown.filter((one) => one.command === command).map(({ key }) => printed(key))
    // A row of digits.
    const told = keys.length > 3 ? `${keys[0]} to ${keys.at(-1)}` : keys.join(', ')
    return keys.length === 0 ? [] : [{ keys: told, title }]
  })
  const width = Math.max(...rows.map(({ keys }) => keys.length))
  const lines = rows.map(({ keys, title }) => `${keys.padEnd(width)}  ${title}`)
  const more = slime ? "SLIME's keys are on: the setting consort.keys." : 'The setting consort.keys puts SLIME\'s keys beside these.'
  return `${lines.join('\n')}\n\n${more} All of them can be changed: "Preferences: Open Keyboard Shortcuts", and type "consort".\n`
}
