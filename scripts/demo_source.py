"""Writes a table of made-up numbers in the layout of a Statistics Canada full-table download.

    demo_source.py OUT.zip [--language en|fr] [--months N] [--revise SEED]

The labels are real, the numbers are not: a seasonal curve with some noise from a fixed seed, so that every run writes
the same rows. `--revise` changes a few of the last twelve months, as a revision would.
"""

import argparse
import io
import random
import zipfile

GEOGRAPHY = [
    (1, 0, "Canada", "Canada", "2021A000011124"),
    (2, 1, "Newfoundland and Labrador", "Terre-Neuve-et-Labrador", "2021A000210"),
    (3, 1, "Prince Edward Island", "Île-du-Prince-Édouard", "2021A000211"),
    (4, 1, "Nova Scotia", "Nouvelle-Écosse", "2021A000212"),
    (5, 1, "New Brunswick", "Nouveau-Brunswick", "2021A000213"),
    (6, 1, "Quebec", "Québec", "2021A000224"),
    (7, 1, "Ontario", "Ontario", "2021A000235"),
    (8, 1, "Manitoba", "Manitoba", "2021A000246"),
    (9, 1, "Saskatchewan", "Saskatchewan", "2021A000247"),
    (10, 1, "Alberta", "Alberta", "2021A000248"),
    (11, 1, "British Columbia", "Colombie-Britannique", "2021A000259"),
]
CHARACTERISTIC = [
    (1, 0, "Population", "Population", 800.0),
    (2, 1, "Labour force", "Population active", 520.0),
    (3, 2, "Employment", "Emploi", 490.0),
    (4, 3, "Full-time employment", "Emploi à temps plein", 400.0),
    (5, 3, "Part-time employment", "Emploi à temps partiel", 90.0),
    (6, 2, "Unemployment", "Chômage", 30.0),
    (7, 0, "Unemployment rate", "Taux de chômage", 6.0),
]
GENDER = [(1, 0, "Total - Gender", "Total - Genre"), (2, 1, "Men+", "Hommes+"), (3, 1, "Women+", "Femmes+")]

HEADER = {
    "en": ["REF_DATE", "GEO", "DGUID", "Labour force characteristics", "Gender", "UOM", "UOM_ID", "SCALAR_FACTOR",
           "SCALAR_ID", "VECTOR", "COORDINATE", "VALUE", "STATUS", "SYMBOL", "TERMINATED", "DECIMALS"],
    "fr": ["PÉRIODE DE RÉFÉRENCE", "GÉO", "DGUID", "Caractéristiques de la population active", "Genre",
           "UNITÉ DE MESURE", "IDENTIFICATEUR D'UNITÉ DE MESURE", "FACTEUR SCALAIRE", "IDENTIFICATEUR SCALAIRE",
           "VECTEUR", "COORDONNÉES", "VALEUR", "STATUS", "SYMBOLE", "TERMINÉ", "DÉCIMALES"],
}
TITLE = {
    "en": "Labour force characteristics by province and gender, monthly (demonstration, numbers made up)",
    "fr": "Caractéristiques de la population active selon la province et le genre, mensuel (démonstration, chiffres fictifs)",
}


def line(cells, separator):
    return separator.join('"' + str(cell).replace('"', '""') + '"' for cell in cells) + "\n"


def rows(language, months, revise):
    french = language == "fr"
    separator = ";" if french else ","
    yield "\ufeff" + line(HEADER[language], separator)
    noise = random.Random(20260710)
    revision = random.Random(revise) if revise else None
    for month in range(months):
        period = f"{2000 + month // 12}-{month % 12 + 1:02d}"
        vector = 2_062_800
        for geo, _, geo_en, geo_fr, dguid in GEOGRAPHY:
            weight = 10.0 if geo == 1 else 10.0 / (geo + 1)
            for char, _, char_en, char_fr, base in CHARACTERISTIC:
                rate = char == 7
                for gender, _, gender_en, gender_fr in GENDER:
                    vector += 1
                    share = 1.0 if gender == 1 or rate else 0.5
                    value = base * (1.0 if rate else weight * share) * (1 + 0.02 * ((month % 12) - 6) / 6) + noise.random()
                    if revision and month >= months - 12 and revision.random() < 0.05:
                        value += 0.3
                    hidden = geo == 3 and char == 5 and gender > 1 and month % 7 == 0
                    text = "" if hidden else f"{value:.1f}"
                    yield line(
                        [period, geo_fr if french else geo_en, dguid, char_fr if french else char_en,
                         gender_fr if french else gender_en,
                         ("Pourcentage" if french else "Percentage") if rate else ("Personnes" if french else "Persons"),
                         239 if rate else 249,
                         ("unités" if french else "units") if rate else ("milliers" if french else "thousands"),
                         0 if rate else 3, f"v{vector}", f"{geo}.{char}.{gender}",
                         text.replace(".", ",") if french else text, "x" if hidden else "", "", "", 1], separator)


def metadata(language):
    french = language == "fr"
    separator = ";" if french else ","
    out = io.StringIO()
    out.write("\ufeff")

    def block(header, lines):
        out.write(line(header, separator))
        for cells in lines:
            out.write(line(cells, separator))
        out.write("\n")

    if french:
        block(["Titre du cube", "Identificateur du produit", "Identificateur CANSIM", "URL", "Notes du cube",
               "Statut des archives", "Fréquence", "Période de référence de début", "Période de référence de fin",
               "Nombre total de dimensions"],
              [[TITLE[language], "14100287", "", "", "1", "ACTIF - ce cube est disponible au public et est à jour",
                "Mensuelle", "2000-01-01", "2026-06-01", "3"]])
        dimension = ["Identificateur de la dimension", "Nom de la dimension", "Notes de la dimension",
                     "Définitions de la dimension"]
        member = ["Identificateur de la dimension", "Nom du membre", "Code de classification", "Identificateur du membre",
                  "Identificateur du membre parent", "Terminé", "Notes du membre", "Définitions du membre"]
        names = ["Géographie", HEADER["fr"][3], HEADER["fr"][4]]
    else:
        block(["Cube Title", "Product Id", "CANSIM Id", "URL", "Cube Notes", "Archive Status", "Frequency",
               "Start Reference Period", "End Reference Period", "Total number of dimensions"],
              [[TITLE[language], "14100287", "", "", "1", "CURRENT - a cube available to the public and that is current",
                "Monthly", "2000-01-01", "2026-06-01", "3"]])
        dimension = ["Dimension ID", "Dimension name", "Dimension Notes", "Dimension Definitions"]
        member = ["Dimension ID", "Member Name", "Classification Code", "Member ID", "Parent Member ID", "Terminated",
                  "Member Notes", "Member Definitions"]
        names = ["Geography", HEADER["en"][3], HEADER["en"][4]]
    block(dimension, [[n + 1, name, "", ""] for n, name in enumerate(names)])
    label = 3 if french else 2
    members = []
    for n, items in enumerate((GEOGRAPHY, CHARACTERISTIC, GENDER), start=1):
        for item in items:
            members.append([n, item[label], "", item[0], item[1] or "", "", "", ""])
    block(member, members)
    if french:
        block(["Légende des symboles"], [])
        block(["Identificateur de la note", "Note"], [["1", "Ces chiffres sont fictifs."]])
    else:
        out.write("Symbol Legend\n")
        block(["Description", "Symbol"], [["suppressed to meet the confidentiality requirements of the Statistics Act", "x"]])
        block(["Note ID", "Note"], [["1", "These numbers are made up."]])
    return out.getvalue()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out")
    arguments.add_argument("--language", choices=["en", "fr"], default="en")
    arguments.add_argument("--months", type=int, default=318)
    arguments.add_argument("--revise", type=int, default=0)
    given = arguments.parse_args()
    with zipfile.ZipFile(given.out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (
            ("14100287.csv", "".join(rows(given.language, given.months, given.revise))),
            ("14100287_MetaData.csv", metadata(given.language)),
        ):
            archive.writestr(zipfile.ZipInfo(name, (2026, 7, 10, 0, 21, 0)), text, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
