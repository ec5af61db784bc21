"""Word lists by language: what carries no topic, what fills and what opens a sentence.

Stop words are what carries no topic; the English list is long because spoken English is.
A language without a list of its own is read with generic rules: words of up to three letters
count as stop words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


def words(text: str) -> frozenset[str]:
    """Return the words of a list that is written as text."""
    return frozenset(text.split())


def pairs(text: str) -> frozenset[str]:
    """Return the phrases of a list that is written as text with commas."""
    return frozenset(" ".join(phrase.split()) for phrase in text.split(","))


@dataclass(frozen=True, slots=True)
class Language:
    """What is known of one language. `stemmer` names a Snowball algorithm, or is empty."""

    code: str
    stemmer: str
    stop: frozenset[str]
    fillers: frozenset[str]
    openers: frozenset[str]

    @property
    def english(self) -> bool:
        """Tell whether the rules that read English grammar apply."""
        return self.code == "en"


_ENGLISH_GRAMMAR = """
a an the this that these those some any each every all both either neither no not nor none such
same other another own i you he she it we they me him her us them my your his its our their mine
yours hers ours theirs myself yourself himself herself itself ourselves themselves one ones who
whom whose which what when where why how whoever whatever whenever wherever is are was were be
been being am do does did done doing have has had having will would shall should can could may
might must ought need needs needed dare used and or but if because as until while of at by for
with about against between into through during before after above below to from up down in out on
off over under again further then once here there than too very just only also even still yet ever
never always often sometimes usually already almost quite rather really actually basically
probably maybe perhaps possibly certainly definitely obviously clearly exactly simply especially
literally totally completely pretty kind kinda sort sorta lot lots bit little much many more most
less least few several enough else so like well now today though although however anyway anyways
otherwise instead therefore thus hence whether since unless without within along across around
behind beside besides beyond near toward towards onto upon per via except plus minus versus i'm
you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd
i'll you'll he'll she'll it'll we'll they'll that's that'll there's there'll here's what's who's
how's where's let's isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't won't
wouldn't shan't shouldn't can't cannot couldn't mustn't mightn't needn't ain't y'all gonna wanna
gotta dunno lemme gimme cause 'cause 'kay 'em til till em that'd there'd what're what'd who'd
who've
"""

_ENGLISH_SPEECH = """
um uh er erm ah oh eh hm hmm mm mmm mhm mm-hmm uh-huh huh uh-oh yeah yep yup yes nope nah okay ok
alright right sure fine cool great good nice better best bad worse worst wow hey hi hello bye
goodbye please thanks thank sorry welcome morning evening afternoon guess guys guy everybody
everyone everything somebody someone something anybody anyone anything nobody nothing somewhere
anywhere thing things stuff way ways think thinks thinking thought know knows known knew knowing
say says said saying tell tells told talk talks talked talking speak mean means meant see sees saw
seen seeing look looks looked looking hear heard listen go goes going went gone come comes came
coming get gets got gotten getting give gives gave given giving take takes took taken taking make
makes made making put puts putting let lets try tries tried trying want wants wanted use uses
using work works worked working feel feels felt seem seems seemed happen happens happened keep
keeps kept start starts started stop stops begin turn turns turned show shows showed shown ask
asks asked asking call calls called bring brings brought leave leaves left run runs set sets find
finds found finding hope hoping wonder wondering remember forget suppose supposed believe agree
agreed expect imagine understand matter matters depend depends depending care mind wait hold hang
add adds added sit move moves moved moving play stay stick grab help helps decide decided doing
does did able certain different similar important interesting interested new old big small large
huge long short high low whole half full empty easy hard difficult possible impossible likely
unlikely ready main basic general particular specific single double last next first second third
fourth fifth final early late later soon ago back front side top bottom end ends ended middle part
parts point points case cases fact idea ideas question questions answer answers example examples
reason reasons problem problems issue issues word words number numbers place places person people
man woman men women kids folks time times minute minutes hour hours day days week weeks month
months year years tonight tomorrow yesterday moment while couple bunch pair ton tons amount level
type types kinds sorts rest piece pieces line lines step steps sense difference change changes
changed changing include includes included including consider considered discuss discussed
discussing continue check checked write writes wrote written read reads reading pick picked choose
chose chosen hand hands head true false wrong funny nicely stupid crazy weird strange perfect
absolutely seriously honestly personally apparently hopefully unfortunately fortunately
specifically essentially generally mostly mainly together apart alone away forward straight ahead
fairly slightly somewhat somehow anymore whatsoever etcetera etc et cetera obvious clear sounds
sound sounded yourselves theirself bloody damn hell god gosh jeez boo yay ha haha oops ooh aah
whoa tada stuffs zero two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
hundred thousand million billion dozen percent plus s t d m re ve ll b c e f g h j k l n o p q r v
w x y z actual current previous recent quick quickly slow slowly happy glad afraid cuz slide
slides list lists info information meeting meetings discussion presentation version result results
missing missed note noted mention mentioned worry worried trouble deal view views
"""

_ENGLISH = Language(
    code="en",
    stemmer="english",
    stop=words(_ENGLISH_GRAMMAR) | words(_ENGLISH_SPEECH),
    fillers=words(
        "um uh er erm ah eh hm hmm mm mmm mhm mm-hmm mm-mm uh-huh uh-oh huh umm uhh uhm ehm nnn ooh"
    ),
    openers=words(
        "so yeah yep yes yup okay ok oh well and but or alright hey right now cool great anyway "
        "anyways actually basically also plus 'cause cause 'kay kay no nope hi hello sure because "
        "then"
    ),
)


def _other(code: str, stemmer: str, stop: str, fillers: str, openers: str) -> Language:
    return Language(code, stemmer, words(stop), words(fillers), words(openers))


_GERMAN = _other(
    "de",
    "german",
    """
    aber alle allem allen aller alles als also auch auf aus bei beim bin bis bist da damit dann
    das dass dein dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch
    dort du durch ein eine einem einen einer eines einfach er es etwas euch eure für ganz gar
    gegen gerade genau gibt gut hab habe haben hat hatte hatten hier hin ich ihm ihn ihr ihre im
    immer in ist ja jetzt kann kannst kein keine können könnte machen macht mal man mehr mein
    meine mich mir mit muss müssen nach natürlich nein nicht nichts noch nur ob oder ohne schon
    sehr sein seine sich sie sind so soll sollen sollte über um und uns unser unsere unter viel
    vielleicht vom von vor wann war waren warum was weil weiß welche wenn wer werde werden wie
    wieder will wir wird wirklich wo wollen wurde würde würden zu zum zur zwar sagen sagt gesagt
    glaube denke
    """,
    "äh ähm hm hmm mhm öh",
    "also ja nun gut okay ok genau und aber oder naja tja",
)

_FRENCH = _other(
    "fr",
    "french",
    """
    ai alors au aussi autre aux avec avez avoir avons bien bon ce cela ces cet cette chose comme
    comment dans de des deux dire dit donc du elle elles en encore es est et étaient était être eu
    eux fait faire faut il ils je jusque la là le les leur leurs lui ma mais me même mes moi mon
    ne nos notre nous on ont ou où oui par parce pas peu peut peux plus pour pourquoi quand que
    quel quelle quelque qui quoi rien sa sans se sera ses si son sont sous sur ta te tes toi ton
    tous tout toute très trop tu un une va vais voilà vont votre vous vraiment y c'est j'ai qu'il
    qu'on d'un d'une n'est l'on s'il ça
    """,
    "euh heu hum hmm mmh bah",
    "alors donc oui et mais ben bon ok okay voilà",
)

_SPANISH = _other(
    "es",
    "spanish",
    """
    a al algo ahora así aquí aunque bien bueno cada como con creo cual cuando cómo cosa cosas de
    del desde después donde dos el él ella ellas ellos en entonces era eran es esa ese eso esta
    está están este esto estoy estos está fue gracias ha había hace hacer hacia han hasta hay he
    la las le les lo los más me mi mis mucho muy nada ni no nos nosotros o os otra otro para pero
    poco por porque puede puedo pues que qué quien quiero sea ser si sí sido sin sobre solo son su
    sus también tan tanto te tener tengo ti tiene tienen todo todos tu tú un una uno unos va vamos
    voy y ya yo
    """,
    "eh em este mmm hmm",
    "bueno pues entonces y pero sí vale ok okay o",
)

_PORTUGUESE = _other(
    "pt",
    "portuguese",
    """
    a agora ainda algo ao aos aqui as assim até bem bom cada coisa coisas com como da das de dela
    dele depois do dos e é ela elas ele eles em então era essa esse esta está estão este eu faz
    fazer foi gente há isso isto já lá mais mas me mesmo meu minha muito muita na nada não nas nem
    no nos nós nossa nosso o onde os ou para pela pelo pode por porque pra quando que quem quero
    se ser seu sim só sobre sua também tem tenho ter tudo um uma uns vai vamos você vocês vou
    """,
    "hum hã ah eh hmm ahn",
    "então bom e mas sim ok okay bem né",
)

_ITALIAN = _other(
    "it",
    "italian",
    """
    a abbiamo ad adesso ai al alla alle allora anche ancora avere bene c'è che chi ci ciò come con
    così cosa cose da dal dalla dei del della delle di dire dopo dove due e è ecco ed era erano
    essere fa fare fatto gli ha hai hanno ho i il in invece io la le lei lo loro lui ma me mi mia
    mio molto ne nel nella no noi non nostra nostro o ogni perché per però più poi può qua quale
    quando quanto quella quello questa queste questi questo qui se sei si sì sia sono sta stato su
    sua suo tra tu tutti tutto un una uno va vi voi
    """,
    "eh ehm uhm mmm hmm",
    "allora e ma sì ecco quindi ok okay beh",
)

_DUTCH = _other(
    "nl",
    "dutch",
    """
    aan al alle als altijd ben bij daar dan dat de deze die dit doen door dus een eens en er even
    gaan gaat ge geen goed had heb hebben heeft heel hem het hier hij hoe hun ik in is ja je jij
    jullie kan kunnen maar me meer men met mij mijn moet moeten na naar nee niet niets nog nou nu
    of om omdat ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar want waren
    was wat we wel welke werd wie wij wil willen worden wordt zal ze zich zij zijn zo zonder zou
    """,
    "eh euh ehm hmm mmm",
    "dus ja nou en maar oké ok okay goed",
)

_STEMMER_OF: Mapping[str, str] = MappingProxyType(
    {
        "ar": "arabic",
        "ca": "catalan",
        "cs": "czech",
        "da": "danish",
        "el": "greek",
        "et": "estonian",
        "eu": "basque",
        "fi": "finnish",
        "ga": "irish",
        "hi": "hindi",
        "hu": "hungarian",
        "hy": "armenian",
        "id": "indonesian",
        "lt": "lithuanian",
        "ne": "nepali",
        "no": "norwegian",
        "nb": "norwegian",
        "pl": "polish",
        "ro": "romanian",
        "ru": "russian",
        "sr": "serbian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
    }
)

_KNOWN: Mapping[str, Language] = MappingProxyType(
    {
        known.code: known
        for known in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _DUTCH)
    }
)


def language_of(tag: str) -> Language:
    """Return what is known of a language tag such as `en-GB`; an unknown one has empty lists."""
    code = tag.replace("_", "-").split("-")[0].strip().lower()
    if code in _KNOWN:
        return _KNOWN[code]
    return Language(code, _STEMMER_OF.get(code, ""), frozenset(), frozenset(), frozenset())
